package queue

import "errors"

// Errors of a store. Each is wrapped with what happened and what to do.
var (
	// ErrFull: no space is left on the disk. Nothing was stored.
	ErrFull = errors.New("the disk of the queue is full")
	// ErrStorage: the disk cannot be written or read. Nothing was stored.
	ErrStorage = errors.New("the queue cannot use its storage")
	// ErrCorrupt: what was read is not what was written.
	ErrCorrupt = errors.New("the queue's database is damaged")
	// ErrSchema: the database was made by a newer heed.
	ErrSchema = errors.New("the queue's database was made by a newer heed")
	// ErrOwned: another process has the database.
	ErrOwned = errors.New("the queue's database belongs to another process")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the queue is closed")
	// ErrNotFound: there is no such call, or it was erased.
	ErrNotFound = errors.New("no such call")
	// ErrState: the call's state does not allow it.
	ErrState = errors.New("the state of the call does not allow it")
	// ErrDoubtful: nobody knows whether the call was carried out, and it was not
	// said that it is to be sent even so.
	ErrDoubtful = errors.New("it may have been carried out, and would be done twice")
	// ErrErased: the call is known but what it said, or was answered, is not kept.
	ErrErased = errors.New("no longer kept")
	// ErrKey: a record is sealed with a key that is not in the ring, or was changed.
	ErrKey = errors.New("cannot be unsealed")
	// ErrInvalid: what was handed in breaks a rule.
	ErrInvalid = errors.New("invalid")
)

// Reasons that the queue itself gives, beside those of heed.Reason.
const (
	ReasonExpired    = "expired"     // not sent before Facts.Expires
	ReasonLeaseLost  = "lease-lost"  // the process that had it ended or hung
	ReasonUnreadable = "unreadable"  // its record cannot be unsealed
	ReasonCancelled  = "canceled"    // by its caller or an operator
	ReasonHandedBack = "handed-back" // claimed, and not begun
	ReasonErased     = "erased"      // what it was to tell of is no longer kept
)
