// Package paths is a small package with bugs to be seeded.
package paths

// Graph holds the neighbours of each place.
type Graph map[string][]string

// Distance is how many steps it takes from one place to another; -1 where no way leads there.
func (g Graph) Distance(from, to string) int {
	seen := map[string]int{from: 0}
	waiting := []string{from}
	for len(waiting) > 0 {
		place := waiting[0]
		waiting = waiting[1:]
		if place == to {
			return seen[place]
		}
		for _, next := range g[place] {
			if _, known := seen[next]; !known {
				seen[next] = seen[place] + 1
				waiting = append(waiting, next)
			}
		}
	}
	return -1
}

// Reachable counts the places that ways lead to from one, itself among them.
func (g Graph) Reachable(from string) int {
	seen := map[string]bool{}
	var visit func(place string)
	visit = func(place string) {
		if seen[place] {
			return
		}
		seen[place] = true
		for _, next := range g[place] {
			visit(next)
		}
	}
	visit(from)
	return len(seen)
}
