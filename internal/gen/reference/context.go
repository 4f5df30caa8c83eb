package reference

import "github.com/dsh-go/dsh/selfmod/catalog"

// Verbs are what every ctx has beside the services that a plugin injects. The
// façade implements them in JavaScript, so they are written by hand.
var Verbs = []catalog.Member{
	{Group: "ctx.on(event, listener, options?)", Summary: "listens; gives the function that removes the listener. options { prepend: true } puts it first."},
	{Group: "ctx.once(event, listener, options?)", Summary: "the same, for the first time only."},
	{Group: "ctx.provide(name, value)", Summary: "offers a service to other plugins; gives the function that takes it back."},
	{Group: "ctx.effect(setup, label?)", Summary: "runs setup now, and at unmount the function that it returned."},
	{Group: "ctx.get(name)", Summary: "a service that you inject; undefined while an optional one is absent."},
	{Group: "ctx.setTimeout, setInterval, timeout, interval, throttle, debounce", Summary: "with inject: ['timer']; see the service timer."},
	{Group: "ctx.tools", Summary: "register, schemas, get, without inject; see the service tools."},
}
