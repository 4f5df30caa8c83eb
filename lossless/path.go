package lossless

// Step is one step of a Path: a member's key, or an item's index when IsIndex.
type Step struct {
	Key     string
	Index   int
	IsIndex bool
}

// Path leads from a root to a value.
type Path []Step

// Format prints the path as one writes it in JavaScript: root.items[2].label, keys that
// are not plain words as ["odd key"]. With root "" it begins with the first step.
// Text beyond 200 characters is cut out of the middle.
func (p Path) Format(root string) string { return root }
