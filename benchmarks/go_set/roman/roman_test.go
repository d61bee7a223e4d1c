package roman

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]int{"III": 3, "IX": 9, "XLII": 42, "MCMXCIV": 1994} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "IIII", "A", "VX"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is none", text)
		}
	}
}

func TestFormat(t *testing.T) {
	for number, want := range map[int]string{4: "IV", 40: "XL", 2024: "MMXXIV"} {
		if got := Format(number); got != want {
			t.Errorf("%d: got %s", number, got)
		}
	}
}
