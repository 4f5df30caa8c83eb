// Package repotest holds the rules of the repository as tests: what a package
// may import, how long a file and a function may be, that everything exported
// is documented, that links lead somewhere, that licences are free.
//
// Each rule is one small file with its table and its reasons; a failure says
// which file broke the rule and what to do. The package has no code of its own
// and nothing imports it.
package repotest
