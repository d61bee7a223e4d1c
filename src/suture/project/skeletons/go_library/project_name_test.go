package project_name

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"testing"
)

// readDoc returns the documentation of the library.
func readDoc(t *testing.T) *doc.Package {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "project_name.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	library, err := doc.NewFromFiles(files, []*ast.File{file}, "project_name")
	if err != nil {
		t.Fatal(err)
	}
	return library
}

func TestThereIsAFunctionOrType(t *testing.T) {
	library := readDoc(t)
	if len(library.Funcs)+len(library.Types) == 0 {
		t.Error("project_name.go has no public function and no public type.")
	}
}

func TestAllPublicNamesHaveAComment(t *testing.T) {
	library := readDoc(t)
	functions := library.Funcs
	for _, one := range library.Types {
		functions = append(append(functions, one.Funcs...), one.Methods...)
		if one.Doc == "" {
			t.Errorf("The type %s has no comment.", one.Name)
		}
	}
	for _, function := range functions {
		if function.Doc == "" {
			t.Errorf("The function %s has no comment.", function.Name)
		}
	}
}
