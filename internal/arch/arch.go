// Package arch holds the import rules of heed as data and finds breaches of
// them in source text.
//
// The rules are those of the design: the pure rooms decide without doing, the
// road imports nothing foreign, the simulator shares no code with what it
// grades. Check reads every Go file of a module; the test of this package
// calls it on heed itself, so that a breach fails the build.
//
// Limits: it reads syntax, not types. A clock handed in as a function value,
// or a method of net/http reached through another package's variable, is not
// seen.
package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/heedproject/heed"

// Breach is one place where a rule is broken.
type Breach struct {
	File string
	Line int
	// Rule says what is forbidden, and why.
	Rule string
}

func (b Breach) String() string { return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Rule) }

// Check parses every Go file of the module rooted at fsys, nested modules and
// testdata left out, and returns the breaches in order of file and line.
func Check(fsys fs.FS) ([]Breach, error) {
	var found []Breach
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(fsys, name)
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		breaches, err := checkFile(name, src)
		found = append(found, breaches...)
		return err
	})
	slices.SortFunc(found, func(a, b Breach) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
	return found, err
}

// enter tells WalkDir to leave out what the go command leaves out too.
func enter(fsys fs.FS, dir string) error {
	if dir == "." {
		return nil
	}
	base := path.Base(dir)
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// file is one parsed source file.
type file struct {
	name  string
	dir   string // "." for the root package
	test  bool
	set   *token.FileSet
	tree  *ast.File
	names map[string]string // name in this file → import path
	found []Breach
}

func checkFile(name string, src []byte) ([]Breach, error) {
	f := &file{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		set: token.NewFileSet(), names: map[string]string{}}
	var err error
	if f.tree, err = parser.ParseFile(f.set, name, src, parser.SkipObjectResolution); err != nil {
		return nil, err
	}
	for _, spec := range f.tree.Imports {
		f.checkImport(spec)
	}
	f.checkInits()
	ast.Inspect(f.tree, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			f.checkUse(sel)
		}
		return true
	})
	return f.found, nil
}

func (f *file) breach(at ast.Node, format string, args ...any) {
	f.found = append(f.found, Breach{f.name, f.set.Position(at.Pos()).Line, fmt.Sprintf(format, args...)})
}

func (f *file) checkImport(spec *ast.ImportSpec) {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return // the parser has already refused it
	}
	name := localName(p)
	if spec.Name != nil {
		name = spec.Name.Name
	}
	if name == "." {
		f.breach(spec, "dot import of %s hides where a name comes from", p)
	}
	f.names[name] = p
	switch {
	case p == module || strings.HasPrefix(p, module+"/"):
		f.checkOwn(spec, within(p))
	case strings.Contains(strings.SplitN(p, "/", 2)[0], "."):
		f.checkForeign(spec, p)
	default:
		f.checkStd(spec, p)
	}
}

// localName is the name an import has in the file when it is not renamed.
func localName(p string) string {
	base := path.Base(p)
	if len(base) > 1 && base[0] == 'v' && base[1] >= '0' && base[1] <= '9' {
		base = path.Base(path.Dir(p))
	}
	return base
}

// within turns an import path of ours into a folder: "." is the root.
func within(p string) string {
	if p == module {
		return "."
	}
	return strings.TrimPrefix(p, module+"/")
}

// checkInits finds init functions: what is registered behind the reader's
// back cannot be found where it is wired.
func (f *file) checkInits() {
	for _, d := range f.tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			f.breach(fn, "func init: list it in a literal table where it is wired")
		}
	}
}
