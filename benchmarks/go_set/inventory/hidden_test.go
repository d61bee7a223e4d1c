package inventory

import "testing"

func TestHidden(t *testing.T) {
	s := New()
	want := map[string]int{}
	names := []string{"a", "b", "c"}
	for i := 0; i < 500; i++ {
		name := names[i*7%3]
		count := i*i%5 - 1
		if i%3 == 0 {
			if (s.Add(name, count) == nil) != (count > 0) {
				t.Fatal("add")
			}
			if count > 0 {
				want[name] += count
			}
		} else if count > 0 {
			able := want[name] >= count
			if (s.Take(name, count) == nil) != able {
				t.Fatal("take")
			}
			if able {
				want[name] -= count
			}
		}
		kinds, low := 0, 0
		for _, left := range want {
			if left > 0 {
				kinds++
				if left < 3 {
					low++
				}
			}
		}
		if s.Kinds() != kinds || s.Low(3) != low {
			t.Fatal("counts")
		}
	}
}
