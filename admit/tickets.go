package admit

// tickets is a heap by priority, then fairness.
type tickets []*Ticket

func (q tickets) Len() int { return len(q) }
func (q tickets) Less(i, j int) bool {
	if q[i].Priority != q[j].Priority {
		return q[i].Priority > q[j].Priority
	}
	return q[i].tag < q[j].tag || q[i].tag == q[j].tag && q[i].age < q[j].age
}
func (q tickets) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i+1, j+1
}
func (q *tickets) Push(x any) {
	t := x.(*Ticket)
	*q = append(*q, t)
	t.index = len(*q)
}
func (q *tickets) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.index = 0
	return t
}
