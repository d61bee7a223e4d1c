// Package grid is a small package with bugs to be seeded.
package grid

// Grid is a board of cells, alive or not.
type Grid [][]bool

// Neighbours counts the living cells around one.
func (g Grid) Neighbours(row, column int) int {
	count := 0
	for y := row - 1; y <= row+1; y++ {
		for x := column - 1; x <= column+1; x++ {
			if y == row && x == column {
				continue
			}
			if y >= 0 && y < len(g) && x >= 0 && x < len(g[y]) && g[y][x] {
				count++
			}
		}
	}
	return count
}

// Step is the next generation of Conway's game of life.
func (g Grid) Step() Grid {
	next := make(Grid, len(g))
	for y := range g {
		next[y] = make([]bool, len(g[y]))
		for x := range g[y] {
			around := g.Neighbours(y, x)
			next[y][x] = around == 3 || (g[y][x] && around == 2)
		}
	}
	return next
}

// Transpose makes rows of columns.
func (g Grid) Transpose() Grid {
	if len(g) == 0 {
		return Grid{}
	}
	turned := make(Grid, len(g[0]))
	for x := range turned {
		for y := range g {
			turned[x] = append(turned[x], g[y][x])
		}
	}
	return turned
}
