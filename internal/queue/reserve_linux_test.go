package queue

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// smallDisk is a reserve on a file system of its own, of 16 MiB.
func smallDisk(t *testing.T) *Reserve {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("mount a small disk: %v: it needs root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return &Reserve{Path: filepath.Join(dir, "reserve"), Log: filepath.Join(dir, "log")}
}

// log makes the log so long, and take up that much.
func (r *Reserve) log(t *testing.T, size int) {
	t.Helper()
	if err := os.WriteFile(r.Log, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *Reserve) free(t *testing.T) int64 {
	t.Helper()
	n, known := Room(filepath.Dir(r.Path))
	if !known {
		t.Fatal("nobody knows how much is free")
	}
	return n
}

func (r *Reserve) filled(t *testing.T) {
	t.Helper()
	if err := r.Fill(); err != nil {
		t.Fatal(err)
	}
}

func TestAReserveTakesUpAnEighthOfWhatIsFreeUntilItIsSpent(t *testing.T) {
	r := smallDisk(t)
	all := r.free(t)
	r.filled(t)
	if got := all - r.free(t); got != all/8 && got != (all/8+4095)/4096*4096 {
		t.Errorf("it takes up %d bytes of %d, want an eighth", got, all)
	}
	if now := time.Now(); !r.spend(now) || r.spend(now) || !r.justSpent(now) || r.justSpent(now.Add(time.Minute)) {
		t.Error("want it to be spent once, and for some time")
	}
	if got := r.free(t); got != all {
		t.Errorf("%d bytes are free once it is spent, want %d", got, all)
	}
}

func TestAReserveGrowsWhenTheDiskHasMuchMoreRoom(t *testing.T) {
	r := smallDisk(t)
	r.log(t, 13<<20)
	r.filled(t)
	if r.held != leastReserve {
		t.Errorf("it has %d bytes of a disk that is nearly full, want the least", r.held)
	}
	r.log(t, 0)
	r.filled(t)
	if info, err := os.Stat(r.Path); err != nil || r.held < 2*leastReserve-4096 || info.Size() != r.held {
		t.Errorf("it has %d bytes once the disk is empty, and its file %v (%v)", r.held, info.Size(), err)
	}
	if other := (&Reserve{Path: r.Path, Log: r.Log}); other.Fill() != nil || other.held != r.held {
		t.Errorf("after a restart it has %d bytes, want %d", other.held, r.held)
	}
}

func TestAReserveThatHasNoRoomIsNone(t *testing.T) {
	r := smallDisk(t)
	r.log(t, int(r.free(t))-(512<<10))
	if err := r.Fill(); err == nil {
		t.Error("there is no error")
	}
	if _, err := os.Stat(r.Path); !os.IsNotExist(err) {
		t.Errorf("what there was of it is left: %v", err)
	}
}

func TestALogThatIsLongerThanTheReserveAllowsIsToBeEmptied(t *testing.T) {
	r, now := smallDisk(t), time.Now()
	r.filled(t)
	r.log(t, int(r.held/2))
	if r.outgrown(now) {
		t.Error("a short log is to be emptied")
	}
	r.log(t, int(r.held))
	if !r.outgrown(now) {
		t.Error("a log as long as the reserve is left")
	}
	if r.emptied(); r.outgrown(now) {
		t.Error("a log that could not be emptied is tried again at once")
	}
	if !r.outgrown(now.Add(time.Second)) {
		t.Error("a log that could not be emptied is not tried again")
	}
	r.log(t, 0)
	r.emptied()
	r.log(t, int(r.held))
	if !r.outgrown(now.Add(time.Second)) {
		t.Error("a log that was emptied, and grew again, is left")
	}
}

func TestALogThatLeavesTooLittleRoomIsToldWithAndWithoutTheReserve(t *testing.T) {
	r := smallDisk(t)
	r.filled(t)
	r.log(t, 4<<20)
	if r.stuck() || r.tight() {
		t.Error("there is room enough")
	}
	r.log(t, 8<<20)
	if !r.stuck() || r.tight() {
		t.Errorf("while it is kept: got %v and %v, want true and false", r.stuck(), r.tight())
	}
	r.spend(time.Now())
	r.log(t, 9<<20)
	if r.stuck() || !r.tight() {
		t.Errorf("once it is spent: got %v and %v, want false and true", r.stuck(), r.tight())
	}
}
