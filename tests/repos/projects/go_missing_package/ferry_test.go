package ferry

import (
	"testing"

	"example.org/ferry/route"
)

func TestMinutes(t *testing.T) {
	if got := route.Minutes(3); got != 12 {
		t.Errorf("Minutes(3) = %d, want 12", got)
	}
}
