// Package inventory is a small package with bugs to be seeded.
package inventory

import "fmt"

// Store holds how many there are of each thing.
type Store struct{ stock map[string]int }

// New makes an empty store.
func New() *Store { return &Store{stock: map[string]int{}} }

// Add puts some of a thing in.
func (s *Store) Add(name string, count int) error {
	if count <= 0 {
		return fmt.Errorf("add %d of %s", count, name)
	}
	s.stock[name] += count
	return nil
}

// Take takes some out; nothing is taken where there are not so many.
func (s *Store) Take(name string, count int) error {
	have, known := s.stock[name]
	if !known || have < count {
		return fmt.Errorf("only %d of %s", have, name)
	}
	if have == count {
		delete(s.stock, name)
		return nil
	}
	s.stock[name] = have - count
	return nil
}

// Kinds is how many kinds of things there are.
func (s *Store) Kinds() int { return len(s.stock) }

// Low names how many kinds there are of which less than a number is left.
func (s *Store) Low(least int) int {
	low := 0
	for _, count := range s.stock {
		if count < least {
			low++
		}
	}
	return low
}
