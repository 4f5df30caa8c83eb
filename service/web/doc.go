// Package web is the service through which plugins read the web: pages and other
// texts with fetch, and what a search provider finds with search.
//
// # Providers
//
// Both go through a provider that is chosen when a call is made: the one that the
// request names, else the one that [Config] names, else the only one that is
// available. For fetches there is [Local]. For searches there is none that works
// without a key, so one has to be registered, by Go code or by a plugin. A
// registration is an effect of the context that made it. A call runs in the
// fiber of the provider's owner, which waits for it when it unloads.
//
// # Policy
//
// Before anything is sent [FetchIntent] or [SearchIntent] is asked, and
// FetchIntent again for each redirect. The URL that listeners see is in its
// canonical form: the host in lower-case ASCII, no default port, no fragment.
//
// # What Local reads
//
// http and https, GET and HEAD, text only. Only public unicast addresses are
// dialled, unless [Config] says otherwise; the rule looks at the address that is
// really dialled, of every connection, so a name that resolves to another address
// the second time gains nothing. There are no cookies, and the environment's
// proxies are not used. A redirect is followed to the same origin, or from http
// to https of the same host, [limits.WebRedirects] times.
//
// The body is unpacked (gzip) and decoded to UTF-8: by its byte order mark, the
// header, or what the page declares; what cannot be decoded becomes U+FFFD.
//
// # Errors
//
// All errors are *[service.Error] with one of the codes Code…; an error of a
// foreign provider that has a code keeps it.
//
// # Bounds
//
// Time, bytes, characters, redirects, headers, URLs, queries and providers are
// bounded by the constants Web… of package limits. The time is for everything,
// however slowly a body drips, but for the question to policy before it.
// HTML is turned into Markdown or text only up to limits.WebConvert bytes, since
// not all of that work can be interrupted; what would make it take more than its
// size deserves is left out (see tame).
//
// # Concurrency
//
// Everything is safe for concurrent use. Nothing here owns a goroutine; those of
// a connection end with the request. When the service unloads, running fetches end
// with CodeAborted, but for those of dependents that are unwinding.
package web
