package dates

import (
	"testing"
	"time"
)

func TestHidden(t *testing.T) {
	for _, year := range []int{1900, 1999, 2000, 2023, 2024} {
		for at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == year; at = at.AddDate(0, 0, 1) {
			if Ordinal(year, int(at.Month()), at.Day()) != at.YearDay() {
				t.Fatal(at)
			}
			if Between(year, 6, 15, int(at.Month()), at.Day()) < 0 {
				t.Fatal(at)
			}
		}
		if Between(year, 1, 1, 12, 31) != Ordinal(year, 12, 31)-1 {
			t.Fatal(year)
		}
	}
}
