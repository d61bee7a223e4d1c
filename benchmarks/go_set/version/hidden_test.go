package version

import (
	"fmt"
	"testing"
)

func TestHidden(t *testing.T) {
	for a := 0; a < 27; a++ {
		for b := 0; b < 27; b++ {
			one, two := [3]int{a / 9, a / 3 % 3, a % 3}, [3]int{b / 9, b / 3 % 3, b % 3}
			want := 0
			if a < b {
				want = -1
			} else if a > b {
				want = 1
			}
			if Compare(one, two) != want || Compatible(one, two) != (a/9 == b/9 && a >= b) {
				t.Fatal(one, two)
			}
		}
		if got, ok := Parse(fmt.Sprintf("%d.%d.%d", a, a+1, a+2)); !ok || got != [3]int{a, a + 1, a + 2} {
			t.Fatal(got)
		}
	}
	if got, ok := Parse("0.0.0"); !ok || got != [3]int{} {
		t.Fatal(got)
	}
}
