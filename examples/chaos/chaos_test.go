// Package chaos holds manifests for Chaos Mesh that put network faults before
// a provider. Its test reads every manifest against the schema of its kind.
package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed/provider/sheet"
)

func TestEveryManifestFitsTheSchemaOfItsKind(t *testing.T) {
	kinds := map[string]int{}
	for _, file := range manifests(t) {
		doc := read(t, file, contents(t, file))
		kind := kindOf(doc)
		kinds[kind]++
		for _, p := range schemaOf(t, kind).problems(doc) {
			t.Errorf("%s: %s", file, p)
		}
	}
	if kinds["HTTPChaos"] == 0 || kinds["NetworkChaos"] == 0 {
		t.Errorf("got manifests %v, want some of each kind", kinds)
	}
}

func TestManifestsHaveNamesOfTheirOwn(t *testing.T) {
	of := map[string]string{}
	for _, file := range manifests(t) {
		doc := read(t, file, contents(t, file)).(map[string]any)
		name, _ := doc["metadata"].(map[string]any)["name"].(string)
		if other, ok := of[name]; ok {
			t.Errorf("%s and %s are both called %q: one would replace the other", file, other, name)
		}
		of[name] = file
	}
}

func TestTheReadmeTellsOfEveryManifest(t *testing.T) {
	readme := contents(t, "README.md")
	for _, file := range manifests(t) {
		if !strings.Contains(readme, "`"+file+"`") {
			t.Errorf("README.md does not tell of %s", file)
		}
	}
}

// What a slip of the pen makes of a good manifest, and what the schema says.
func TestTheSchemaFindsWhatIsWrong(t *testing.T) {
	for _, slip := range []struct{ file, old, new, want string }{
		{"http-slow.yaml", "delay: 2s", "delay: 2", `spec.delay: 2 is no string`},
		{"http-slow.yaml", "delay: 2s", "delay: 2 s", `spec.delay: "2 s" does not match ^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
		{"http-slow.yaml", "delay: 2s", "dealy: 2s", `spec: none of its alternatives fits`},
		{"http-slow.yaml", "method: GET", "method: FETCH", `spec.method: "FETCH" is none of its values`},
		{"http-slow.yaml", "  duration: 2m\n", "", `spec: duration is missing`},
		{"http-slow.yaml", "port: 8640", "port: 0", `spec.port: 0 is less than 1`},
		{"http-slow.yaml", "port: 8640", "port: 8640.5", `spec.port: 8640.5 is no integer`},
		{"http-slow.yaml", "target: Response", "target: Answer", `spec.target: "Answer" is none of its values`},
		{"http-slow.yaml", "mode: all", "mode: every", `spec.mode: "every" is none of its values`},
		{"http-slow.yaml", "v1alpha1", "v1", `apiVersion: "chaos-mesh.org/v1" is not "chaos-mesh.org/v1alpha1"`},
		{"http-slow.yaml", "  selector:", "  selectors:", `spec: selector is missing`},
		{"http-throttled.yaml", `Retry-After: "5"`, `Retry-After: 5`, `spec.replace.headers.Retry-After: 5 is no string`},
		{"http-login-page.yaml", "PCFkb2N0", "PCFkb2N", `spec.replace.body: "PCFkb2NeXBlIGh0bWw+PHRpdGxlPlNpZ24gaW48L3RpdGxlPg==" does not match ^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`},
		{"http-lying-quota.yaml", `[X-RateLimit-Reset, "60"]`, `[X-RateLimit-Reset]`, `spec.patch.headers[1]: has 1 items, fewer than 2`},
		{"network-latency.yaml", "action: delay", "action: loss", `spec: none of its alternatives fits`},
		{"network-latency.yaml", `correlation: "25"`, `correlation: "250"`, `spec.delay.correlation: "250" does not match ^([0-9]{1,2}(\.[0-9]+)?|100)$`},
		{"network-latency.yaml", "direction: to", "direction: towards", `spec.direction: "towards" is none of its values`},
		{"network-latency.yaml", "    latency: 300ms\n", "", `spec.delay: latency is missing`},
		{"network-bandwidth.yaml", "rate: 64kbps", "rate: 64kb", `spec.bandwidth.rate: "64kb" does not match ^[0-9]+(bps|kbps|mbps|gbps|tbps)$`},
		{"network-loss.yaml", "    mode: all\n    selector", "    selector", `spec.target: mode is missing`},
	} {
		text := contents(t, slip.file)
		wrong := strings.Replace(text, slip.old, slip.new, 1)
		if wrong == text {
			t.Fatalf("%s does not contain %q", slip.file, slip.old)
		}
		doc := read(t, slip.file, wrong)
		got := schemaOf(t, kindOf(read(t, slip.file, text))).problems(doc)
		if !slices.Contains(got, slip.want) {
			t.Errorf("%s with %q: got %q, want %q", slip.file, slip.new, got, slip.want)
		}
	}
}

// A rule that the reader of schemas does not know would bind nothing.
func TestTheSchemasUseOnlyWhatIsChecked(t *testing.T) {
	for _, file := range schemas(t) {
		var root any
		if err := json.Unmarshal([]byte(contents(t, file)), &root); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got := unchecked(root.(map[string]any), nil); got != nil {
			t.Errorf("%s: unchecked rules: %s", file, cmp.Diff(got, []string(nil)))
		}
	}
}

func manifests(t *testing.T) []string { return glob(t, "*.yaml") }

func schemas(t *testing.T) []string { return glob(t, "*.schema.json") }

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files like %s: %v", pattern, err)
	}
	return files
}

func contents(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func kindOf(doc any) string {
	kind, _ := doc.(map[string]any)["kind"].(string)
	return kind
}

func schemaOf(t *testing.T, kind string) *schema {
	t.Helper()
	s, err := newSchema([]byte(contents(t, strings.ToLower(kind)+".schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the document as JSON has it.
func read(t *testing.T, name, text string) any {
	t.Helper()
	node, problems := sheet.ReadYAML(name, []byte(text))
	for _, p := range problems {
		t.Fatal(p)
	}
	return value(node)
}

// value is n as encoding/json would give it: plain scalars that are numbers or
// truth values become such.
func value(n *sheet.Node) any {
	switch {
	case n.Kind == sheet.Mapping:
		m := map[string]any{}
		for _, member := range n.Members {
			m[member.Key.Text] = value(member.Value)
		}
		return m
	case n.Kind == sheet.Sequence:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = value(item)
		}
		return list
	case n.IsNull():
		return nil
	case n.Plain:
		var v any
		if json.Unmarshal([]byte(n.Text), &v) == nil {
			return v
		}
	}
	return n.Text
}
