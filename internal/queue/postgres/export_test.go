package postgres

// CheckClock is checkClock.
var CheckClock = checkClock

// Sort is sort.
var Sort = sort
