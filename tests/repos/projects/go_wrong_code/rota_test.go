package rota

import "testing"

func TestLabel(t *testing.T) {
	for _, one := range []struct {
		start, length int
		want          string
	}{
		{8 * 60, 90, "08:00-09:30"},
		{23 * 60, 120, "23:00-01:00"},
		{30, -60, "00:30-23:30"},
	} {
		if got := Label(one.start, one.length); got != one.want {
			t.Errorf("Label(%d, %d) = %q, want %q", one.start, one.length, got, one.want)
		}
	}
}
