package grid

import (
	"reflect"
	"testing"
)

func TestHidden(t *testing.T) {
	block := Grid{{true, true}, {true, true}}
	if !reflect.DeepEqual(block.Step(), block) {
		t.Fatal("block")
	}
	beehive := Grid{{false, true, true, false}, {true, false, false, true}, {false, true, true, false}}
	if !reflect.DeepEqual(beehive.Step(), beehive) {
		t.Fatal("beehive")
	}
	full := Grid{{true, true, true}, {true, true, true}, {true, true, true}}
	if full.Neighbours(1, 1) != 8 || full.Neighbours(0, 0) != 3 || full.Neighbours(0, 1) != 5 || full.Neighbours(2, 1) != 5 {
		t.Fatal("neighbours")
	}
	if !reflect.DeepEqual(full.Step(), Grid{{true, false, true}, {false, false, false}, {true, false, true}}) {
		t.Fatal("full")
	}
	if !reflect.DeepEqual(beehive.Transpose().Transpose(), beehive) {
		t.Fatal("twice")
	}
}
