package classify

import "strings"

// jsonText checks JSON (RFC 8259) as it streams by.
type jsonText struct {
	in   *input
	open []byte // the containers that are open: { and [
}

// documents reads one value, or with many any number of them, to the end.
func (j *jsonText) documents(many bool) error {
	for n := 0; ; n++ {
		c, ok := j.in.space()
		for many && ok && c == 0x1e { // the record separator of RFC 7464
			c, ok = j.in.space()
		}
		switch {
		case !ok && n == 0 && !many:
			return j.in.cut("json", "a value")
		case !ok:
			return j.in.failure()
		case n > 0 && !many:
			return j.in.wrong("json", "more after the value")
		}
		if err := j.value(c); err != nil {
			return err
		}
	}
}

// value reads the value that begins with c, however deep it is.
func (j *jsonText) value(c byte) error {
	for {
		closed, next, err := j.begin(c)
		for err == nil && closed && len(j.open) > 0 {
			closed, next, err = j.after()
		}
		if err != nil || closed {
			return err
		}
		c = next
	}
}

// begin reads a scalar, or opens a container. Where the container is not empty,
// next begins its first value.
func (j *jsonText) begin(c byte) (closed bool, next byte, err error) {
	switch {
	case c == '"':
		return true, 0, j.text()
	case c == '-' || isDigit(c):
		return true, 0, j.number(c)
	case c == 't':
		return true, 0, j.word("rue")
	case c == 'f':
		return true, 0, j.word("alse")
	case c == 'n':
		return true, 0, j.word("ull")
	case c != '{' && c != '[':
		return false, 0, j.in.wrong("json", "not the beginning of a value")
	case len(j.open) == maxDepth:
		return false, 0, j.in.wrong("json", "nested too deep")
	}
	j.open = append(j.open, c)
	next, ok := j.in.space()
	switch {
	case !ok:
		return false, 0, j.cut("")
	case next == c+2: // } and ] follow their openings by two in ASCII
		j.open = j.open[:len(j.open)-1]
		return true, 0, nil
	case c == '{':
		next, err = j.member(next)
	}
	return false, next, err
}

// after reads what follows a value within a container: its end, or the
// beginning of another value.
func (j *jsonText) after() (closed bool, next byte, err error) {
	top := j.open[len(j.open)-1]
	c, ok := j.in.space()
	switch {
	case !ok:
		return false, 0, j.cut("")
	case c == top+2:
		j.open = j.open[:len(j.open)-1]
		return true, 0, nil
	case c != ',':
		return false, 0, j.in.wrong("json", "neither a comma nor the end of the container")
	}
	if next, ok = j.in.space(); !ok {
		return false, 0, j.cut("")
	}
	if top == '{' {
		next, err = j.member(next)
	}
	return false, next, err
}

// member reads a name that begins with c, and the colon; next begins the value.
func (j *jsonText) member(c byte) (next byte, err error) {
	if c != '"' {
		return 0, j.in.wrong("json", "not the name of a member")
	}
	if err := j.text(); err != nil {
		return 0, err
	}
	c, ok := j.in.space()
	if ok && c != ':' {
		return 0, j.in.wrong("json", "no colon after a name")
	}
	if ok {
		c, ok = j.in.space()
	}
	if !ok {
		return 0, j.cut("")
	}
	return c, nil
}

// text reads a string after its opening quote.
func (j *jsonText) text() error {
	for {
		c, ok := j.in.next()
		switch {
		case !ok:
			return j.cut(`"`)
		case c == '"':
			return nil
		case c < ' ':
			return j.in.wrong("json", "a control character in a string")
		case c == '\\':
			if err := j.escape(); err != nil {
				return err
			}
		}
	}
}

func (j *jsonText) escape() error {
	c, ok := j.in.next()
	if !ok {
		return j.cut(`"`)
	}
	if c != 'u' {
		if strings.IndexByte(`"\/bfnrt`, c) < 0 {
			return j.in.wrong("json", "an unknown escape in a string")
		}
		return nil
	}
	for range 4 {
		if c, ok = j.in.next(); !ok {
			return j.cut(`"`)
		}
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return j.in.wrong("json", "an unknown escape in a string")
		}
	}
	return nil
}

// number reads the number that begins with c and gives back what follows it.
func (j *jsonText) number(c byte) error {
	ok := true
	if c == '-' {
		if c, ok = j.in.next(); !ok {
			return j.cut("a digit")
		}
	}
	switch {
	case !isDigit(c):
		return j.in.wrong("json", "a number without digits")
	case c == '0':
		c, ok = j.in.next()
	default:
		c, ok = j.digits()
	}
	if ok && c == '.' {
		if err := j.digit(); err != nil {
			return err
		}
		c, ok = j.digits()
	}
	if ok && c|0x20 == 'e' {
		if c, ok = j.in.next(); ok && c != '+' && c != '-' {
			j.in.back()
		}
		if err := j.digit(); err != nil {
			return err
		}
		_, ok = j.digits()
	}
	if ok {
		j.in.back()
	}
	return nil
}

// digit reads the digit that is due.
func (j *jsonText) digit() error {
	switch c, ok := j.in.next(); {
	case !ok:
		return j.cut("a digit")
	case !isDigit(c):
		return j.in.wrong("json", "a number without digits")
	}
	return nil
}

// digits skips digits and returns what follows.
func (j *jsonText) digits() (c byte, ok bool) {
	for {
		if c, ok = j.in.next(); !ok || !isDigit(c) {
			return c, ok
		}
	}
}

func (j *jsonText) word(rest string) error {
	for i := range len(rest) {
		c, ok := j.in.next()
		if !ok {
			return j.cut(rest[i:])
		}
		if c != rest[i] {
			return j.in.wrong("json", "not a word of JSON")
		}
	}
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// cut is the error for a text that ends within a value: what is missing, and
// then the ends of all that is open.
func (j *jsonText) cut(what string) error {
	var b strings.Builder
	b.WriteString(what)
	for i := len(j.open) - 1; i >= 0; i-- {
		if b.Len() > 16 {
			b.WriteString("…")
			break
		}
		b.WriteByte(j.open[i] + 2)
	}
	return j.in.cut("json", b.String())
}
