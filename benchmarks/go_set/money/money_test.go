package money

import (
	"reflect"
	"testing"
)

func TestSplit(t *testing.T) {
	got, err := Split(100, 3)
	if err != nil || !reflect.DeepEqual(got, []int{34, 33, 33}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := Split(100, 0); err != ErrShare {
		t.Errorf("got %v", err)
	}
}

func TestFormat(t *testing.T) {
	for cents, want := range map[int]string{1205: "12.05", -40: "-0.40", 7: "0.07", 0: "0.00"} {
		if got := Format(cents); got != want {
			t.Errorf("%d: got %s, want %s", cents, got, want)
		}
	}
}

func TestDiscount(t *testing.T) {
	if got := Discount(999, 10); got != 899 {
		t.Errorf("got %d", got)
	}
	if got := Discount(200, 25); got != 150 {
		t.Errorf("got %d", got)
	}
}
