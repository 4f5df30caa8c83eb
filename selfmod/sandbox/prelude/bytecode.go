package prelude

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
)

// The bytecode of the core and of each part, in files named by Key.
//
//go:embed bytecode
var bytecodeFiles embed.FS

// Key names what a version of the engine makes of a script of this package.
func Key(script, engine string) string {
	h := sha256.New()
	h.Write([]byte(engine))
	h.Write([]byte{0})
	h.Write([]byte(script))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Bytecode returns the bytecode of [Core] or of a part's source, stripped, for the
// version of the engine; nil when there is none, for another version or another
// script, which then is to be compiled. It serves little-endian machines only.
//
// After a change of the scripts or of the engine:
//
//	go test ./selfmod/sandbox/prelude -run TestBytecodeIsFresh -update
func Bytecode(script, engine string) []byte {
	code, err := bytecodeFiles.ReadFile("bytecode/" + Key(script, engine) + ".bin")
	if err != nil {
		return nil
	}
	return code
}
