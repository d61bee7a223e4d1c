// Package ring is a small package with bugs to be seeded.
package ring

// Ring keeps the last few numbers that it is told.
type Ring struct {
	items []int
	next  int
	full  bool
}

// New makes a ring of a size.
func New(size int) *Ring {
	return &Ring{items: make([]int, size)}
}

// Add tells it a number.
func (r *Ring) Add(item int) {
	r.items[r.next] = item
	r.next = (r.next + 1) % len(r.items)
	if r.next == 0 {
		r.full = true
	}
}

// Len is how many it holds.
func (r *Ring) Len() int {
	if r.full {
		return len(r.items)
	}
	return r.next
}

// Items are those that it holds, the oldest first.
func (r *Ring) Items() []int {
	if !r.full {
		return append([]int{}, r.items[:r.next]...)
	}
	return append(append([]int{}, r.items[r.next:]...), r.items[:r.next]...)
}

// Mean is their mean, 0 where there is none.
func (r *Ring) Mean() float64 {
	if r.Len() == 0 {
		return 0
	}
	sum := 0
	for _, item := range r.Items() {
		sum += item
	}
	return float64(sum) / float64(r.Len())
}
