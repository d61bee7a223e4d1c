package words

import (
	"reflect"
	"testing"
)

func TestCount(t *testing.T) {
	got := Count("The cat, the dog. THE end")
	if got["the"] != 3 || got["cat"] != 1 || len(got) != 4 {
		t.Errorf("got %v", got)
	}
}

func TestTop(t *testing.T) {
	if got := Top("b a b c a b d", 2); !reflect.DeepEqual(got, []string{"b", "a"}) {
		t.Errorf("got %v", got)
	}
	if got := Top("y x", 5); !reflect.DeepEqual(got, []string{"x", "y"}) {
		t.Errorf("got %v", got)
	}
}

func TestTitle(t *testing.T) {
	if got := Title("a long  \u00e9t\u00e9"); got != "A Long \u00c9t\u00e9" {
		t.Errorf("got %q", got)
	}
}
