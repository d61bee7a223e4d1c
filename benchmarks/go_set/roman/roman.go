// Package roman is a small package with bugs to be seeded.
package roman

import "errors"

// ErrNumeral is told of what is no Roman numeral.
var ErrNumeral = errors.New("no Roman numeral")

var values = map[byte]int{'I': 1, 'V': 5, 'X': 10, 'L': 50, 'C': 100, 'D': 500, 'M': 1000}

var steps = []struct {
	value int
	text  string
}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}}

// Parse reads a numeral.
func Parse(text string) (int, error) {
	total := 0
	for i := 0; i < len(text); i++ {
		value, known := values[text[i]]
		if !known {
			return 0, ErrNumeral
		}
		if i+1 < len(text) && value < values[text[i+1]] {
			total -= value
		} else {
			total += value
		}
	}
	if total == 0 || Format(total) != text {
		return 0, ErrNumeral
	}
	return total, nil
}

// Format writes a number from 1 on.
func Format(number int) string {
	text := ""
	for _, step := range steps {
		for number >= step.value {
			text += step.text
			number -= step.value
		}
	}
	return text
}
