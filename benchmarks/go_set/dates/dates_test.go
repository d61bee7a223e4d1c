package dates

import "testing"

func TestLeap(t *testing.T) {
	for year, want := range map[int]bool{2024: true, 2023: false, 1900: false, 2000: true} {
		if Leap(year) != want {
			t.Errorf("%d", year)
		}
	}
}

func TestDays(t *testing.T) {
	if Days(2023, 2) != 28 || Days(2024, 2) != 29 || Days(2023, 4) != 30 || Days(2023, 12) != 31 || Days(2023, 13) != 0 {
		t.Error("days")
	}
}

func TestOrdinal(t *testing.T) {
	if got := Ordinal(2024, 3, 1); got != 61 {
		t.Errorf("got %d", got)
	}
	if got := Ordinal(2023, 1, 31); got != 31 {
		t.Errorf("got %d", got)
	}
}

func TestBetween(t *testing.T) {
	if got := Between(2023, 2, 27, 3, 2); got != 3 {
		t.Errorf("got %d", got)
	}
	if got := Between(2023, 3, 2, 2, 27); got != 3 {
		t.Errorf("got %d", got)
	}
}
