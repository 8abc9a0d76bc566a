package classify

import (
	"bufio"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// utf8Text returns r without a byte order mark and, where it is UTF-16, as
// UTF-8. Other charsets pass through: the marks of JSON and XML are the same
// ASCII bytes in all of them.
func utf8Text(r *bufio.Reader) *bufio.Reader {
	head, _ := r.Peek(3)
	switch order := byteOrder(head); {
	case order != nil:
		return bufio.NewReader(&utf16Reader{in: r, order: order})
	case cutMark(head):
		_, _ = r.Discard(len(head))
	}
	return r
}

// cutMark tells whether head is the byte order mark of UTF-8, or so little of
// any that the text ends within its mark.
func cutMark(head []byte) bool {
	return len(head) > 0 && slices.ContainsFunc([]string{"\xef\xbb\xbf", "\xfe", "\xff"},
		func(mark string) bool { return strings.HasPrefix(mark, string(head)) })
}

// byteOrder tells how head spells UTF-16, or nil. Without a mark, a zero beside
// the first character gives it away (RFC 4627 §3), whatever charset is declared.
func byteOrder(head []byte) binary.ByteOrder {
	switch {
	case len(head) < 2:
		return nil
	case head[0] == 0xfe && head[1] == 0xff, head[0] == 0 && head[1] != 0:
		return binary.BigEndian
	case head[0] == 0xff && head[1] == 0xfe, head[0] != 0 && head[1] == 0:
		return binary.LittleEndian
	}
	return nil
}

// utf16Reader reads UTF-16 as UTF-8. A unit that is cut in half ends the text.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	out   []byte
	begun bool
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		r, err := u.rune()
		if err != nil {
			return 0, err
		}
		if r == 0xfeff && !u.begun {
			u.begun = true
			continue
		}
		u.begun = true
		u.out = utf8.AppendRune(u.out[:0], r)
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

func (u *utf16Reader) rune() (rune, error) {
	r, err := u.unit()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	low, err := u.unit()
	return utf16.DecodeRune(r, low), err
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(u.in, b[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		return 0, err
	}
	return rune(u.order.Uint16(b[:])), nil
}
