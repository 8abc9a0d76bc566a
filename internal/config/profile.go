package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// profileName is a built-in name, or the path of a file.
type profileName struct{ p *string }

func (n profileName) builtIn() sheet.Value { return sheet.OneOf(n.p, provider.Names()...) }

// Read implements sheet.Value.
func (n profileName) Read(r *sheet.Reader, node *sheet.Node, path string) {
	if node.Kind == sheet.Scalar && isPath(node.Text) {
		sheet.Text(n.p).Read(r, node, path)
		return
	}
	if use, is := kin[node.Text]; is && node.Kind == sheet.Scalar {
		r.Problem(node, path, use, "%q names a kind of API, and profiles are of one each", node.Text)
		return
	}
	n.builtIn().Read(r, node, path)
}

// kin are names of whole families of APIs that one might look for.
var kin = map[string]string{
	"ogc":      "use wfs or wms",
	"geocoder": "use nominatim, or generic with the limits of the provider",
}

// Write implements sheet.Value.
func (n profileName) Write() *sheet.Node { return sheet.Text(n.p).Write() }

// Schema implements sheet.Value.
func (n profileName) Schema() map[string]any {
	return map[string]any{"oneOf": []any{n.builtIn().Schema(),
		map[string]any{"type": "string", "pattern": `[/\\]|\.ya?ml$`, "examples": []string{"profiles/our-ils.yaml"}}}}
}

// isPath tells a path from a name: it has a slash or the ending of a file.
func isPath(text string) bool {
	return strings.ContainsAny(text, `/\`) || strings.HasSuffix(text, ".yaml") || strings.HasSuffix(text, ".yml")
}

// profile returns the profile called name at node, which stands at path. A
// file is read once, from the folder of the file that names it, and what is
// wrong with it is reported once.
func (p *parser) profile(name string, node *sheet.Node, path string) (provider.Profile, bool) {
	if !isPath(name) {
		known, err := provider.Get(name)
		return known, err == nil // the table reports an unknown name
	}
	if known, ok := p.config.Profiles[name]; ok {
		return known, known.Name != ""
	}
	file := filepath.FromSlash(name)
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(p.File), file)
	}
	data, err := readFile(file)
	var known provider.Profile
	var problems []Problem
	if err == nil {
		known, problems = provider.Read(file, data)
	}
	if p.config.Profiles == nil {
		p.config.Profiles = map[string]provider.Profile{}
	}
	p.config.Profiles[name] = known
	switch {
	case err != nil:
		p.Problem(node, path, "give its path from the folder of this file", "the profile cannot be read: %v", err)
	case len(problems) > 0:
		p.Problem(node, path, "mend it; heed provider check "+file+" tells the same", "the profile %s has %d problem(s)", file, len(problems))
		p.foreign = append(p.foreign, problems...)
	}
	return known, known.Name != ""
}

// readFile reads a file as far as a document may be long. What is no file,
// such as a pipe, could keep its reader waiting.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, errNoFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, sheet.MaxBytes+1))
}

var errNoFile = errors.New("this is no regular file")

// profile returns the profile of e, if it has one.
func (c *Config) profile(e *Endpoint) (provider.Profile, bool) {
	if p, ok := c.Profiles[e.Profile]; ok {
		return p, true
	}
	p, err := provider.Get(e.Profile)
	return p, err == nil
}
