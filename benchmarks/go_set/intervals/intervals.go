// Package intervals is a small package with bugs to be seeded.
package intervals

import "sort"

// Interval covers Start up to, and without, End.
type Interval struct{ Start, End int }

// Overlap tells whether two intervals share a point.
func Overlap(a, b Interval) bool {
	return a.Start < b.End && b.Start < a.End
}

// Merge joins intervals that touch or overlap, in the order of their starts.
func Merge(all []Interval) []Interval {
	sorted := append([]Interval{}, all...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Start < sorted[j].Start })
	var merged []Interval
	for _, next := range sorted {
		last := len(merged) - 1
		if last >= 0 && next.Start <= merged[last].End {
			if next.End > merged[last].End {
				merged[last].End = next.End
			}
			continue
		}
		merged = append(merged, next)
	}
	return merged
}

// Covered is the number of points that some interval covers.
func Covered(all []Interval) int {
	total := 0
	for _, one := range Merge(all) {
		total += one.End - one.Start
	}
	return total
}
