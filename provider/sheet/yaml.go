package sheet

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxBytes is the most a document may have. Settings are far below it.
const MaxBytes = 1 << 20

// maxTokens bounds the words and signs of a document, because the parser's
// time grows with their square: 95,000 keys took it half a minute.
const maxTokens = 50_000

// maxDepth is how deep values may nest.
const maxDepth = 64

// What is too much, in words.
const (
	nested  = "values are nested too deep"
	tooMany = "the file has too many keys and values"
)

// ReadYAML turns a file of settings into a tree; see Sort.ReadYAML.
func ReadYAML(name string, data []byte) (*Node, []Problem) { return settings.ReadYAML(name, data) }

// Sort is what a document is one of, which the remedies of its problems tell.
type Sort struct {
	// Least says what to write into an empty file, First how to begin one.
	Least, First string
	// Defaults tells that it has a place for what its parts share.
	Defaults bool
}

var settings = Sort{Least: "write at least version and endpoints", First: "begin with keys, such as version: 1", Defaults: true}

// shared is the remedy where a part would be written once for several.
func (s Sort) shared(with, without string) string {
	if s.Defaults {
		return with
	}
	return without
}

// ReadYAML turns a document into a tree. It is strict: a key twice, an anchor,
// a tag, a second document are problems. The node is nil when the text is not
// YAML at all; there is one problem then.
func (s Sort) ReadYAML(name string, data []byte) (*Node, []Problem) {
	y := yamlReader{Reader{File: name}, s}
	if y.checkBytes(data); len(y.Problems) > 0 {
		return nil, y.Problems
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	file, err := y.parse(string(data))
	if err != nil {
		y.syntax(err)
		return nil, y.Problems
	}
	body := y.body(file)
	if body == nil {
		if len(y.Problems) == 0 {
			y.Problem(&Node{}, "", s.Least, "the file is empty")
		}
		return nil, y.Problems
	}
	n := y.node(body, "")
	if n.Kind != Mapping {
		y.Problem(n, "", s.First, "%s stands where %s belong", n.Kind, s.shared("the settings", "keys"))
		return nil, y.Problems
	}
	return n, y.Problems
}

type yamlReader struct {
	Reader
	sort Sort
}

func (y *yamlReader) checkBytes(data []byte) {
	if len(data) > MaxBytes {
		y.Problem(&Node{}, "", "keep it under 1 MiB", "the file is too large")
		return
	}
	for i, line := range bytes.Split(data, []byte("\n")) {
		at := func(col int) *Node { return &Node{Line: i + 1, Column: col + 1} }
		indent := len(line) - len(bytes.TrimLeft(line, " \t"))
		tab := bytes.IndexByte(line[:indent], '\t')
		odd := bytes.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r == 0x7f })
		switch {
		case !utf8.Valid(line):
			y.Problem(at(0), "", "save the file as UTF-8", "the line is not UTF-8")
		case odd >= 0:
			y.Problem(at(odd), "", "remove it", "a control character stands here")
		case tab >= 0 && len(bytes.TrimSpace(line)) > 0:
			y.Problem(at(tab), "", "indent with spaces", "a tab stands in the indentation")
		}
	}
}

// parse runs the parser, which recurses: what nests too deeply is refused
// before. It has been seen to panic on odd input, which is no reason to fall.
func (y *yamlReader) parse(text string) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("the file cannot be read as YAML")
		}
	}()
	tokens := lexer.Tokenize(text)
	if len(tokens) > maxTokens {
		return nil, &yaml.SyntaxError{Message: tooMany, Token: tokens[maxTokens]}
	}
	if tk := tooDeep(tokens); tk != nil {
		return nil, &yaml.SyntaxError{Message: nested, Token: tk}
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// tooDeep returns the token that nests too deeply, by brackets, by dashes and
// question marks on one line, or by indentation.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, dashes, line := 0, 0, 0
	for _, tk := range tokens {
		if tk.Position.Line != line {
			line, dashes = tk.Position.Line, 0
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			brackets++
		case token.MappingEndType, token.SequenceEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType, token.MappingValueType:
			dashes++
		}
		if brackets > maxDepth || brackets == 0 && dashes > maxDepth || tk.Position.IndentNum > 8*maxDepth {
			return tk
		}
	}
	return nil
}

func (y *yamlReader) syntax(err error) {
	var s *yaml.SyntaxError
	if !errors.As(err, &s) || s.Token == nil || s.Token.Position == nil {
		y.Problem(&Node{}, "", "check the indentation and the quotes", "the file cannot be read as YAML")
		return
	}
	// The error's own text would show the lines around, secrets included.
	message, _, _ := strings.Cut(s.Message, "\n")
	remedy := "check the indentation and the quotes"
	switch message {
	case nested:
		remedy = "nest less"
	case tooMany:
		remedy = y.sort.shared("put what endpoints share under defaults", "make it shorter")
	}
	y.Problem(y.place(s.Token), "", remedy, "%s", message)
}

func (y *yamlReader) place(tk *token.Token) *Node {
	if tk == nil || tk.Position == nil {
		return &Node{}
	}
	return &Node{Line: tk.Position.Line, Column: tk.Position.Column}
}

func (y *yamlReader) body(file *ast.File) ast.Node {
	var found ast.Node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if d, ok := doc.Body.(*ast.DirectiveNode); ok {
			y.Problem(y.place(d.GetToken()), "", "remove it", "directives are not supported")
			continue
		}
		if _, comment := doc.Body.(*ast.CommentGroupNode); comment {
			continue
		}
		if found != nil {
			y.Problem(y.place(doc.Body.GetToken()), "", "keep one document in the file", "a second document begins here")
			continue
		}
		found = doc.Body
	}
	return found
}

// node turns n, which stands at path, into a Node.
func (y *yamlReader) node(n ast.Node, path string) *Node {
	switch n := n.(type) {
	case *ast.MappingNode:
		return y.mapping(n, n.Values, path)
	case *ast.MappingValueNode:
		return y.mapping(nil, []*ast.MappingValueNode{n}, path)
	case *ast.SequenceNode:
		out := y.place(n.GetToken())
		out.Kind = Sequence
		for i, v := range n.Values {
			out.Items = append(out.Items, y.node(v, fmt.Sprintf("%s[%d]", path, i)))
		}
		return out
	case *ast.AnchorNode:
		y.Problem(y.place(n.GetToken()), path, y.sort.shared("write the value out, or put it under defaults", "write the value out"), "anchors are not supported")
		return y.node(n.Value, path)
	case *ast.AliasNode:
		y.Problem(y.place(n.GetToken()), path, "put quotes around a value that begins with *", "aliases are not supported")
	case *ast.TagNode:
		y.Problem(y.place(n.GetToken()), path, "leave the tag out", "tags are not supported")
		return y.node(n.Value, path)
	case nil:
		return &Node{Plain: true}
	default:
		return y.scalar(n, path)
	}
	return &Node{Plain: true}
}

func (y *yamlReader) scalar(n ast.Node, path string) *Node {
	out := y.place(n.GetToken())
	switch n := n.(type) {
	case *ast.StringNode:
		out.Text = n.Value
		out.Plain = n.Token.Type != token.SingleQuoteType && n.Token.Type != token.DoubleQuoteType
	case *ast.LiteralNode:
		if n.Value != nil {
			out.Text = n.Value.Value
		}
	case *ast.NullNode:
		out.Plain = true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.Text, out.Plain = n.GetToken().Value, true
	default:
		out.Plain = true
		y.Problem(out, path, "write a value, a list or keys", "this form of YAML is not supported")
	}
	return out
}

func (y *yamlReader) mapping(m *ast.MappingNode, values []*ast.MappingValueNode, path string) *Node {
	out := &Node{Kind: Mapping}
	seen := make(map[string]*Node, len(values))
	for _, v := range values {
		key := y.key(v.Key, path)
		if key == nil {
			continue
		}
		at := Join(path, key.Text)
		value := y.node(v.Value, at)
		if value.Line == 0 {
			value.Line, value.Column = key.Line, key.Column
		}
		if first := seen[key.Text]; first != nil {
			y.Problem(key, at, "keep one of them", "the key stands here a second time, after line %d", first.Line)
			continue
		}
		seen[key.Text] = key
		out.Members = append(out.Members, Member{Key: key, Value: value})
	}
	switch {
	case m != nil && m.IsFlowStyle:
		at := y.place(m.Start)
		out.Line, out.Column = at.Line, at.Column
	case len(out.Members) > 0:
		out.Line, out.Column = out.Members[0].Key.Line, out.Members[0].Key.Column
	}
	return out
}

func (y *yamlReader) key(k ast.MapKeyNode, path string) *Node {
	switch k := k.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return y.scalar(k, path)
	case *ast.MergeKeyNode:
		y.Problem(y.place(k.GetToken()), path, y.sort.shared("put shared settings under defaults", "write the keys out"), "merge keys are not supported")
	default:
		y.Problem(y.place(k.GetToken()), path, "write the key as plain text", "this form of a key is not supported")
	}
	return nil
}
