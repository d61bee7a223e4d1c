package intervals

import (
	"reflect"
	"testing"
)

func TestOverlap(t *testing.T) {
	if !Overlap(Interval{1, 4}, Interval{3, 6}) {
		t.Error("they share 3")
	}
	if Overlap(Interval{1, 3}, Interval{3, 5}) {
		t.Error("they only touch")
	}
	if Overlap(Interval{5, 7}, Interval{1, 2}) {
		t.Error("they are apart")
	}
}

func TestMerge(t *testing.T) {
	got := Merge([]Interval{{5, 8}, {1, 3}, {3, 4}, {6, 7}})
	want := []Interval{{1, 4}, {5, 8}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestCovered(t *testing.T) {
	if got := Covered([]Interval{{0, 4}, {2, 6}, {10, 11}}); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}
