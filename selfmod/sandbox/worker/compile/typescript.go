package compile

import (
	"encoding/json"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// transformed is what esbuild makes of a body.
type transformed struct {
	code    string
	mapping []segment
}

// transform erases types and lowers to what the engine knows. A nil problem
// means success.
func transform(source, file string, typescript bool) (transformed, *problemAt) {
	loader := api.LoaderJS
	if typescript {
		loader = api.LoaderTS
	}
	result := api.Transform(before+source+after, api.TransformOptions{
		Loader: loader, Target: api.ES2022, Sourcefile: file, LogLevel: api.LogLevelSilent, LogLimit: 1,
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude,
	})
	if len(result.Errors) > 0 {
		return transformed{}, problemOf(source, result.Errors[0])
	}
	var m struct {
		Mappings string `json:"mappings"`
	}
	if err := json.Unmarshal(result.Map, &m); err != nil {
		return transformed{}, &problemAt{-1, "esbuild wrote no source map: " + err.Error()}
	}
	return transformed{code: string(result.Code), mapping: decodeMappings(m.Mappings)}, nil
}

func problemOf(source string, m api.Message) *problemAt {
	p := &problemAt{offset: -1, text: m.Text}
	if l := m.Location; l != nil {
		// esbuild counts lines from 1, the wrapper's first, columns in bytes from 0.
		p.offset = newIndex(source).offset(l.Line-2, l.Column)
	}
	return p
}

// segment is one entry of a source map: a place in the generated text and where
// it came from. Both count from 0, columns in UTF-16 units.
type segment struct {
	genLine, genColumn int
	source             int // its number
	line, column       int
	mapped             bool
}

// decodeMappings reads the "mappings" of a source map. It stops where the text
// is not what a source map has.
func decodeMappings(text string) []segment {
	var out []segment
	source, line, column := 0, 0, 0
	for genLine, group := range strings.Split(text, ";") {
		genColumn := 0
		for _, field := range strings.Split(group, ",") {
			values, ok := decodeVLQ(field)
			if !ok {
				return out
			}
			switch len(values) {
			case 0:
				continue
			case 1:
				genColumn += values[0]
				out = append(out, segment{genLine: genLine, genColumn: genColumn})
			case 4, 5:
				genColumn += values[0]
				source += values[1]
				line += values[2]
				column += values[3]
				out = append(out, segment{genLine, genColumn, source, line, column, true})
			default:
				return out
			}
		}
	}
	return out
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// decodeVLQ reads base-64 variable-length numbers: five bits a digit, the sixth
// says that more follow, the lowest bit of a number is its sign.
func decodeVLQ(field string) ([]int, bool) {
	var out []int
	value, shift := 0, 0
	for i := range len(field) {
		d := strings.IndexByte(base64Digits, field[i])
		if d < 0 || shift > 30 {
			return nil, false
		}
		value |= (d & 31) << shift
		if d&32 != 0 {
			shift += 5
			continue
		}
		n := value >> 1
		if value&1 != 0 {
			n = -n
		}
		out = append(out, n)
		value, shift = 0, 0
	}
	return out, shift == 0
}
