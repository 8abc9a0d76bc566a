package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// pure are the rooms that decide without doing: nothing in them waits, sends,
// locks or reads a clock, so that library, queue worker and planner can share
// them.
var pure = []string{"policy", "hint", "classify", "backoff", "call", "mask"}

// clockless are told what time it is: the pure rooms, and admit, which holds
// state.
var clockless = append([]string{"admit"}, pure...)

// road is what a Go user of the library gets. It has no foreign import.
var road = append([]string{".", "admit", "token"}, pure...)

// own lists, for the folders that have such a list, what of ours they may
// import. A folder that ends in /... stands for all below it.
var own = map[string][]string{
	"policy":   {},
	"mask":     {},
	"backoff":  {"policy"},
	"hint":     {"policy"},
	"classify": {"policy", "hint", "mask"},
	"call":     {"policy", "hint", "classify", "backoff", "mask"},
	"admit":    {"policy", "hint", "classify", "backoff", "mask"},
	"token":    {"policy", "mask", "hint", "backoff"},
	".":        {"policy", "admit", "token", "classify", "hint", "call", "backoff", "mask"},
	"provider": {"policy", "hint", "classify", "mask", "provider/..."},
	// sheet is the grammar of our YAML documents and knows nothing of a call.
	"sim":            {"sim/...", "provider/golden", "provider/sheet"},
	"sim/...":        {"sim", "sim/...", "provider/golden", "provider/sheet"},
	"check":          {"sim", "sim/...", "check/...", "provider/golden", "provider/sheet"},
	"internal/queue": {"policy", "classify", "mask", "internal/queue/..."},
	"plan":           {"policy", "admit", "call", "classify", "hint", "backoff", "mask", "plan/...", "internal/chart"},
	"internal/config": {"policy", "admit", "token", "token/...", "classify", "hint", "call", "backoff", "mask",
		"provider", "provider/...", "internal/config/..."},
	// policy and classify are the words in which heed.Transport and its reports speak.
	"cmd/heed": {".", "policy", "classify", "internal/app", "internal/config", "internal/queue", "check", "check/...",
		"plan", "sim", "sim/...", "provider", "provider/..."},
	"internal/chart": {},
	"internal/arch":  {},
}

// door lists what may be imported only from certain folders.
var door = []struct {
	target  string
	from    []string
	because string
}{
	{"cmd/...", nil, "a command is imported by nobody"},
	{"internal/app", []string{"cmd/..."}, "only cmd imports app"},
	{"internal/config", []string{"cmd/...", "internal/app"}, "rooms are handed settings, they do not read them"},
	{"internal/gateway", []string{"internal/app"}, "only app wires the gateway"},
	{"internal/web", []string{"internal/app"}, "only app wires the dashboard"},
	{"check", []string{"cmd/..."}, "only cmd runs the checker"},
	{"plan", []string{"cmd/..."}, "only cmd runs the planner"},
	{"internal/queue/...", []string{"internal/app"}, "only app imports a store"},
}

// strict folders obey their own list in tests too: a checker whose tests lean
// on the road grades itself.
var strict = []string{"sim", "check"}

// foreign lists which modules a folder may import, by prefix.
var foreign = map[string][]string{
	"provider/...":    {"github.com/goccy/go-yaml"},
	"provider":        {"github.com/theory/jsonpath"},
	"internal/config": {"github.com/goccy/go-yaml", "github.com/theory/jsonpath"},
	"internal/observe": {"github.com/prometheus/", "go.opentelemetry.io/",
		"google.golang.org/protobuf"},
	"token/...": {"golang.org/x/oauth2"},
	"cmd/...":   {"github.com/alecthomas/kong", "golang.org/x/term"},
}

// drivers are folders that may import any module: each wraps one.
var drivers = []string{"internal/queue/...", "admit/..."}

// proving are the modules that tests anywhere may import.
var proving = []string{"github.com/google/go-cmp", "github.com/rogpeppe/go-internal", "pgregory.net/rapid",
	"github.com/Shopify/toxiproxy", "github.com/chromedp/", "github.com/heedproject/"}

// doing are the standard packages that a pure room may not import, by prefix.
var doing = []string{"net", "os", "log", "database/sql", "sync", "syscall", "runtime", "plugin", "math/rand/",
	"math/rand", "crypto/rand", "testing"}

// thinking are the exceptions: packages of values and grammars.
var thinking = []string{"net/http", "net/url", "net/netip", "net/textproto", "math/rand/v2"}

// words are the names of net/http that a pure room may use, by prefix.
var words = []string{"Header", "Status", "Method", "TimeFormat", "ParseTime", "CanonicalHeaderKey"}

// clocks are the functions of package time that read or run a clock.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// seeded are the names of math/rand/v2 that draw from no global source.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8", "Zipf"}

// process are the uses of the process that belong to cmd alone.
var process = map[string][]string{
	"os":  {"Args", "Exit", "Getenv", "LookupEnv", "Environ", "Setenv", "Unsetenv", "ExpandEnv"},
	"log": {"Fatal", "Fatalf", "Fatalln"},
}

// inside tells whether dir is pattern, or below it where pattern ends in /... .
func inside(dir string, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if above, ok := strings.CutSuffix(p, "/..."); ok {
			return strings.HasPrefix(dir, above+"/")
		}
		return dir == p
	})
}

func hasPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// isProgram tells whether the file belongs to a program of its own.
func (f *file) isProgram() bool { return inside(f.dir, "cmd/...", "examples/...") }

func (f *file) checkOwn(spec *ast.ImportSpec, target string) {
	list, limited := f.own()
	obeys := !f.test || inside(f.dir, strict...)
	if limited && obeys && target != f.dir && !inside(target, list...) {
		f.breach(spec, "%s may not import %s", title(f.dir), title(target))
	}
	for _, d := range door {
		if inside(target, d.target) && !f.test && !inside(f.dir, d.from...) && !inside(f.dir, target+"/...") {
			f.breach(spec, "%s may not import %s: %s", title(f.dir), title(target), d.because)
		}
	}
}

// own is what of ours the file's folder may import, and whether that is limited.
func (f *file) own() (list []string, limited bool) {
	if list, limited = own[f.dir]; limited {
		return list, true
	}
	for pattern, list := range own {
		if strings.HasSuffix(pattern, "/...") && inside(f.dir, pattern) {
			return list, true
		}
	}
	return nil, false
}

func title(dir string) string {
	if dir == "." {
		return "the root package"
	}
	return dir
}

func (f *file) checkForeign(spec *ast.ImportSpec, p string) {
	if f.test && hasPrefix(p, proving) || inside(f.dir, drivers...) {
		return
	}
	for dir, allowed := range foreign {
		if inside(f.dir, dir) && hasPrefix(p, allowed) {
			return
		}
	}
	if slices.Contains(road, f.dir) {
		f.breach(spec, "%s imports %s: the road has no foreign import", title(f.dir), p)
		return
	}
	f.breach(spec, "%s may not import %s: add it to the table with a page in docs/decisions", title(f.dir), p)
}

func (f *file) checkStd(spec *ast.ImportSpec, p string) {
	if f.test || !slices.Contains(pure, f.dir) || slices.Contains(thinking, p) {
		return
	}
	for _, d := range doing {
		if p == d || strings.HasPrefix(p, d+"/") {
			f.breach(spec, "%s is pure and may not import %s", f.dir, p)
			return
		}
	}
}

// checkUse looks at a name used from an imported package.
func (f *file) checkUse(sel *ast.SelectorExpr) {
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return
	}
	p, ok := f.names[x.Name]
	if !ok || f.test {
		return
	}
	name := sel.Sel.Name
	if slices.Contains(process[p], name) && !f.isProgram() {
		f.breach(sel, "%s.%s: arguments, environment and exit belong to cmd", p, name)
	}
	if slices.Contains(clockless, f.dir) {
		f.checkClock(sel, p, name)
	}
	if p == "net/http" && slices.Contains(pure, f.dir) && !hasPrefix(name, words) {
		f.breach(sel, "%s is pure and may use names of headers and statuses only, not http.%s", f.dir, name)
	}
}

func (f *file) checkClock(sel *ast.SelectorExpr, p, name string) {
	switch {
	case p == "time" && slices.Contains(clocks, name):
		f.breach(sel, "%s is told the time and may not call time.%s", f.dir, name)
	case (p == "math/rand/v2" || p == "math/rand") && !slices.Contains(seeded, name):
		f.breach(sel, "%s draws from the *rand.Rand it is given, not from rand.%s", f.dir, name)
	}
}
