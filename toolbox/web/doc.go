// Package web is the tools web_fetch and web_search, over the service of
// package service/web, which bounds them, asks policy and chooses the provider.
//
// web_fetch is always there. It shows a page by windows of characters that end
// with a line where there is one, and each says where the next begins; a window is
// cut from what the service gives, which is at most limits.WebContent characters.
//
// web_search is registered only while a search provider is seen from the scope of
// the plugin (web.Web.SearchProviders), so that models are not told of a tool that
// cannot work. It comes and goes with the providers.
//
// Everything is safe for concurrent use; nothing starts a goroutine.
package web
