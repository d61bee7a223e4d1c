package intervals

import (
	"math/rand"
	"testing"
)

func TestHidden(t *testing.T) {
	draw := rand.New(rand.NewSource(1))
	for round := 0; round < 300; round++ {
		var all []Interval
		seen := map[int]bool{}
		for i := 0; i < draw.Intn(6); i++ {
			start := draw.Intn(20)
			end := start + 1 + draw.Intn(6)
			all = append(all, Interval{start, end})
			for at := start; at < end; at++ {
				seen[at] = true
			}
		}
		if Covered(all) != len(seen) {
			t.Fatalf("%v: %d, not %d", all, Covered(all), len(seen))
		}
		if len(all) > 1 {
			shared := false
			for at := all[0].Start; at < all[0].End; at++ {
				shared = shared || (at >= all[1].Start && at < all[1].End)
			}
			if Overlap(all[0], all[1]) != shared {
				t.Fatalf("%v", all[:2])
			}
		}
	}
}
