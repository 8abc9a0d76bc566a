package gcs

import "testing"

func TestEqualContentsCountOnce(t *testing.T) {
	s := store{held: map[string]*content{}}
	a, b := newContent([]byte("hello")), newContent([]byte("hello"))
	if s.keep(a) != nil || s.keep(b) != nil || s.bytes != 5 || &a.data[0] != &b.data[0] {
		t.Errorf("got %d bytes, want the same 5", s.bytes)
	}
	s.drop(a)
	if s.bytes != 5 {
		t.Errorf("got %d bytes, want the 5 that are still used", s.bytes)
	}
	s.drop(b)
	if s.bytes != 0 || len(s.held) != 0 {
		t.Errorf("got %d bytes, want none", s.bytes)
	}
}

func TestACaseHoldsOnlySoMuch(t *testing.T) {
	s := store{bytes: maxStored - 4}
	if bad := s.keep(newContent([]byte("hello"))); bad == nil || bad.Status != 507 {
		t.Errorf("got %v, want 507", bad)
	}
	if s.bytes != maxStored-4 {
		t.Errorf("got %d bytes more, want none", s.bytes-maxStored+4)
	}
	if bad := s.room(4); bad != nil {
		t.Errorf("got %v, want room for 4 bytes", bad)
	}
}
