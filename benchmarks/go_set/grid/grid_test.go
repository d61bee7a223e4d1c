package grid

import (
	"reflect"
	"testing"
)

func TestNeighbours(t *testing.T) {
	g := Grid{{true, true, false}, {false, true, false}, {true, false, true}}
	if got := g.Neighbours(1, 1); got != 4 {
		t.Errorf("got %d, want 4", got)
	}
	if got := g.Neighbours(2, 2); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

func TestStep(t *testing.T) {
	bar := Grid{{false, true, false}, {false, true, false}, {false, true, false}}
	want := Grid{{false, false, false}, {true, true, true}, {false, false, false}}
	if got := bar.Step(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestTranspose(t *testing.T) {
	got := Grid{{true, false, false}, {true, true, false}}.Transpose()
	if !reflect.DeepEqual(got, Grid{{true, true}, {false, true}, {false, false}}) {
		t.Errorf("got %v", got)
	}
	if len((Grid{}).Transpose()) != 0 {
		t.Error("nothing there")
	}
}
