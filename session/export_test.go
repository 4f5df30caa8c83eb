package session

// SetLimit makes a log full at n bytes.
func (l *Log) SetLimit(n int64) { l.limit = n }
