package ring

import (
	"reflect"
	"testing"
)

func TestHidden(t *testing.T) {
	for size := 1; size < 6; size++ {
		r := New(size)
		var all []int
		for i := 0; i < 20; i++ {
			r.Add(i * i)
			all = append(all, i*i)
			want := all
			if len(want) > size {
				want = want[len(want)-size:]
			}
			sum := 0
			for _, item := range want {
				sum += item
			}
			if !reflect.DeepEqual(r.Items(), want) || r.Len() != len(want) || r.Mean() != float64(sum)/float64(len(want)) {
				t.Fatalf("size %d: %v, not %v", size, r.Items(), want)
			}
		}
	}
}
