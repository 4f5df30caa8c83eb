package service

import "github.com/dsh-go/dsh/cordis"

type reporterKey struct{}

// WithReporter derives a context of a temporary plugin: report is told what [Warn]
// has to say about it. It must not wait.
func WithReporter(c *cordis.Context, report func(error)) *cordis.Context {
	return c.WithValue(reporterKey{}, report)
}

// Warn tells the plugin of c that something which it gave to a service could not be
// used, and nobody waits for the error: a temporary plugin finds it among its
// faults, which cordis_inspect shows, any other on its logger.
func Warn(c *cordis.Context, err error) {
	if report, ok := c.Value(reporterKey{}).(func(error)); ok {
		report(err)
		return
	}
	c.Logger().Warn(err.Error())
}
