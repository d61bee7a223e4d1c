package haul

import "testing"

func TestDays(t *testing.T) {
	if got := Days(200); got != 2 {
		t.Errorf("Days(200) = %d, want 2", got)
	}
}
