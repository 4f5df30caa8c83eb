package composition

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/dsh-go/dsh/selfmod/files"
)

// fileOf is a plugin file of texts that were read before.
func fileOf(shown, dir, entry string, texts map[string]string) (files.File, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q\n", entry) // a hash takes everything
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		_, _ = fmt.Fprintf(sum, "%q %q\n", name, texts[name])
	}
	return files.File{Path: shown, Dir: dir, Entry: entry, Files: texts, Hash: hex.EncodeToString(sum.Sum(nil))}, nil
}
