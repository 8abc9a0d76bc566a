package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Command is a client that is one run of a program for each operation, such as
// curl -sS --fail --retry 5 {url}. Exit status 0 means that it believes to
// have succeeded.
type Command struct {
	// Args are the program and its arguments. In each {url}, {method}, {body},
	// {body_file}, {headers_file}, {key}, {api_key}, {deadline} and {base_url}
	// are replaced. An argument {header} stands for all header fields: it and
	// an option before it are repeated. Without a body the arguments with {body}
	// are left out, and an option before them. Another word in braces is an error,
	// but in a script after -c or -e.
	Args []string
	// Env is the environment; that of the session is added.
	Env []string
}

// Hello says what the template allows.
func (c Command) Hello(context.Context) (Hello, error) {
	if len(c.Args) == 0 || !c.uses("url") {
		return Hello{}, errors.New("the command has no {url}; write, for example: curl -sS --fail --retry 5 {url}")
	}
	if name := c.unknown(); name != "" {
		return Hello{}, fmt.Errorf("nothing is known of %s in the command; there are {%s}", name, strings.Join(placeholders, "} {"))
	}
	if _, err := exec.LookPath(c.Args[0]); err != nil {
		return Hello{}, err
	}
	h := Hello{Name: c.name(), Claims: append(Ordinary(), Parallel)}
	headers := c.uses("header") || c.uses("headers_file")
	if headers {
		h.Claims = append(h.Claims, Headers)
	}
	if c.uses("method") && (c.uses("body") || c.uses("body_file")) {
		h.Claims = append(h.Claims, Writes)
	}
	if c.uses("deadline") {
		h.Claims = append(h.Claims, Deadlines)
	}
	return h, nil
}

// name is the file of the program: that of the script where an interpreter runs
// one, which is the first argument that is no option.
func (c Command) name() string {
	if i := slices.IndexFunc(c.Args[1:], func(a string) bool { return !strings.HasPrefix(a, "-") }); i >= 0 {
		script := c.Args[i+1]
		if info, err := os.Stat(script); err == nil && info.Mode().IsRegular() {
			return filepath.Base(script)
		}
	}
	return filepath.Base(c.Args[0])
}

func (c Command) uses(name string) bool {
	return slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, "{"+name+"}") })
}

// placeholders are what is replaced in the arguments.
var placeholders = []string{"url", "method", "header", "headers_file", "body", "body_file", "key", "api_key", "deadline", "base_url"}

// braced is a word in braces that is no variable of a shell and no %{variable} of
// curl.
var braced = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[^$%\w{])\{([a-zA-Z_]+)\}`) })

// unknown is the first placeholder that stands for nothing; empty: there is
// none. The text of a script, after -c or -e, has braces of its own.
func (c Command) unknown() string {
	for i, a := range c.Args {
		if i > 0 && (c.Args[i-1] == "-c" || c.Args[i-1] == "-e") {
			continue
		}
		for _, m := range braced().FindAllStringSubmatch(a, -1) {
			if !slices.Contains(placeholders, m[1]) {
				return "{" + m[1] + "}"
			}
		}
	}
	return ""
}

// Open makes a folder for the files of the session.
func (c Command) Open(_ context.Context, s Setting) (Session, error) {
	dir, err := os.MkdirTemp("", "heed-check-")
	if err != nil {
		return nil, err
	}
	return &commands{command: c, setting: s, dir: dir, keep: newTail(s.secrets()...)}, nil
}

// commands is a session of a Command.
type commands struct {
	command Command
	setting Setting
	dir     string
	keep    *tail

	mu   sync.Mutex
	left int
}

// Do runs the program once.
func (c *commands) Do(ctx context.Context, t Task) Outcome {
	args, err := c.args(t)
	if err != nil {
		return Outcome{Broken: "could not be given its files: " + err.Error()}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = slices.Concat(c.command.Env, c.setting.environ(), unproxied(c.command.Env))
	cmd.Dir = c.dir
	p := newFamily(cmd)
	p.output(c.keep)
	state, err := p.run()
	c.mu.Lock()
	c.left += p.left
	c.mu.Unlock()
	switch {
	case p.cut.Load(), err != nil && ctx.Err() != nil:
		return Outcome{Broken: context.Cause(ctx).Error()}
	case err != nil:
		return Outcome{Broken: "could not be run: " + err.Error()}
	case p.flooded():
		return Outcome{Broken: fmt.Sprintf("wrote more than %d MiB", mostOutput>>20)}
	}
	o := Outcome{ID: t.ID, OK: state == 0}
	if state != 0 {
		o.Error = "exit status " + strconv.Itoa(state)
	}
	return o
}

// args fills the template in.
func (c *commands) args(t Task) ([]string, error) {
	values := []string{
		"{url}", t.URL, "{method}", t.Method, "{body}", t.Body, "{base_url}", c.setting.BaseURL,
		"{api_key}", c.setting.APIKey, "{key}", t.Header["Idempotency-Key"], "{deadline}", seconds(t.Deadline()),
		"{body_file}", filepath.Join(c.dir, t.ID+".body"), "{headers_file}", filepath.Join(c.dir, t.ID+".headers"),
	}
	if err := c.files(t); err != nil {
		return nil, err
	}
	fill := strings.NewReplacer(values...)
	var args []string
	for i, a := range c.command.Args {
		option := i > 0 && !strings.HasPrefix(a, "-") && strings.HasPrefix(c.command.Args[i-1], "-")
		switch {
		case a == "{header}":
			var before []string
			if option {
				before = []string{args[len(args)-1]}
				args = args[:len(args)-1]
			}
			for _, name := range slices.Sorted(maps.Keys(t.Header)) {
				args = append(append(args, before...), name+": "+t.Header[name])
			}
		case t.Body == "" && strings.Contains(a, "{body"):
			if option {
				args = args[:len(args)-1]
			}
		default:
			args = append(args, fill.Replace(a))
		}
	}
	return args, nil
}

// files writes body and header fields for templates that name them.
func (c *commands) files(t Task) error {
	var head bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(t.Header)) {
		fmt.Fprintf(&head, "%s: %s\n", name, t.Header[name])
	}
	return errors.Join(os.WriteFile(filepath.Join(c.dir, t.ID+".headers"), head.Bytes(), 0o600),
		os.WriteFile(filepath.Join(c.dir, t.ID+".body"), []byte(t.Body), 0o600))
}

// Close removes the folder.
func (c *commands) Close() Output {
	_ = os.RemoveAll(c.dir) // a client that still writes there was ended before
	out := c.keep.told()
	out.Left = c.left
	return out
}
