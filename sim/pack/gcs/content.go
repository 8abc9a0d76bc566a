package gcs

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"net/http"
	"strings"

	"github.com/heedproject/heed/sim"
)

// maxStored bounds the contents that one case holds.
const maxStored = 1 << 30

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// content is the bytes of an object and their checksums in base64, as the API
// tells them.
type content struct {
	data        []byte
	crc32c, md5 string
	users       int // objects that have it
}

// newContent computes the checksums.
func newContent(data []byte) *content {
	sum := md5.Sum(data)
	return &content{
		data:   data,
		crc32c: base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli))),
		md5:    base64.StdEncoding.EncodeToString(sum[:]),
	}
}

// check compares with the checksums that a client sent, "" for none.
func (c *content) check(crc32c, md5 string) *sim.Refusal {
	switch {
	case crc32c != "" && crc32c != c.crc32c:
		return invalid("crc32c", "Provided CRC32C \""+crc32c+"\" doesn't match calculated CRC32C \""+c.crc32c+"\".")
	case md5 != "" && md5 != c.md5:
		return invalid("md5Hash", "Provided MD5 hash \""+md5+"\" doesn't match calculated MD5 hash \""+c.md5+"\".")
	}
	return nil
}

// checkSent compares with what the metadata and X-Goog-Hash say, which looks
// like crc32c=…,md5=….
func (c *content) checkSent(fields resource, header string) *sim.Refusal {
	crc, _ := fields["crc32c"].(string)
	sum, _ := fields["md5Hash"].(string)
	if bad := c.check(crc, sum); bad != nil {
		return bad
	}
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var bad *sim.Refusal
		switch name {
		case "crc32c":
			bad = c.check(value, "")
		case "md5":
			bad = c.check("", value)
		}
		if bad != nil {
			return bad
		}
	}
	return nil
}

// store counts the contents of one case. Equal ones are kept once.
type store struct {
	held  map[string]*content // by MD5 and CRC32C
	bytes int                 // of the contents, and of uploads under way
}

func stored(x *sim.Exchange) *store {
	rows := sim.Rows[*store](x, "store")
	s, ok := rows.Get("")
	if !ok {
		s = &store{held: map[string]*content{}}
		rows.Put("", s)
	}
	return s
}

// room takes n bytes, or says that there is no room for them.
func (s *store) room(n int) *sim.Refusal {
	if s.bytes+n > maxStored {
		return &sim.Refusal{Kind: sim.Overloaded, Status: http.StatusInsufficientStorage,
			Detail: "This simulator holds at most 1 GiB in one case; delete objects, or POST /_sim/reset."}
	}
	s.bytes += n
	return nil
}

// keep counts one more user of c. Where it is there already, c gets its bytes.
func (s *store) keep(c *content) *sim.Refusal {
	name := c.md5 + c.crc32c
	held, ok := s.held[name]
	if !ok {
		if bad := s.room(len(c.data)); bad != nil {
			return bad
		}
		held = &content{data: c.data}
		s.held[name] = held
	}
	held.users++
	c.data = held.data
	return nil
}

// drop counts one user less.
func (s *store) drop(c *content) {
	name := c.md5 + c.crc32c
	held := s.held[name]
	if held.users--; held.users == 0 {
		delete(s.held, name)
		s.bytes -= len(held.data)
	}
}
