package composition

import (
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/tool"
)

// check says which rows of Go plugins name none, and what is wrong with their configs:
// of what projects say, or of what others do.
func check(rows []document.Row, catalog loader.Catalog, project bool) (faults document.Faults) {
	for _, r := range rows {
		if r.Disabled && len(r.Faults) == 0 && r.Name == tool.Service.Name() {
			if at := r.At("disabled"); (at.Layer != nil && at.Layer.Kind == document.Project) == project {
				faults = append(faults, document.FieldFault(r, []string{"disabled"}, fmt.Sprintf("the row %s cannot be disabled: nothing that has to do with tools starts without it; to withhold single tools disable their rows", plain.Name(r.ID))))
			}
		}
		if r.Disabled || len(r.Faults) > 0 {
			continue
		}
		if r.Group {
			faults = append(faults, check(r.Children, catalog, project)...)
			continue
		}
		if isFile(r.Name) {
			continue
		}
		_, _, wrong := loader.Check(r, catalog)
		for _, f := range wrong {
			if at := r.At(f.Path...); (at.Layer != nil && at.Layer.Kind == document.Project) == project {
				faults = append(faults, f.Fault)
			}
		}
	}
	return faults
}
