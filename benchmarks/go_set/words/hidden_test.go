package words

import (
	"reflect"
	"testing"
)

func TestHidden(t *testing.T) {
	if got := Top("one two two three three three ONE one one", 3); !reflect.DeepEqual(got, []string{"one", "three", "two"}) {
		t.Fatal(got)
	}
	if got := Top("q p o", 0); len(got) != 0 {
		t.Fatal(got)
	}
	if got := Count("it's 4 o'clock"); got["it"] != 1 || got["s"] != 1 || got["o"] != 1 || got["clock"] != 1 || len(got) != 4 {
		t.Fatal(got)
	}
	if Title("") != "" || Title("x") != "X" || Title("aB cD") != "AB CD" {
		t.Fatal("title")
	}
}
