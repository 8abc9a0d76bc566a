package sqlite

import (
	"os"
	"syscall"
)

// network are the magic numbers of file systems that are served by another
// machine (statfs(2)). Their locks and their memory maps do not hold what WAL
// needs (sqlite.org/wal.html).
var network = map[int64]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x01021997: "9P",
	0x5346414f: "AFS",
	0x00c36400: "Ceph",
	0x0bd00bd0: "Lustre",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
	0x73757245: "Coda",
}

// networkFS names the network file system that dir lies on; empty: none is known.
func networkFS(dir string) string {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return ""
	}
	return network[int64(uint32(s.Type))]
}

// syncData brings what was written to f to the disk. It leaves out the time
// stamps, which nothing needs.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return err
		}
	}
}
