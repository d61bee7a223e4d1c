package parcel

import "testing"

func TestPrice(t *testing.T) {
	if got := Price(10, 20, 30); got != 306 {
		t.Errorf("Price(10, 20, 30) = %d, want 306", got)
	}
}
