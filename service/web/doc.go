// Package web is the service through which plugins read the web.
package web
