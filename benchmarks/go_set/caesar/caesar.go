// Package caesar is a small package with bugs to be seeded.
package caesar

import "strings"

// Shift moves letters on in the alphabet, and leaves all else as it is.
func Shift(text string, by int) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return moved(r, 'a', by)
		case r >= 'A' && r <= 'Z':
			return moved(r, 'A', by)
		}
		return r
	}, text)
}

func moved(r, first rune, by int) rune {
	place := (int(r-first) + by) % 26
	if place < 0 {
		place += 26
	}
	return first + rune(place)
}

// Reverse turns a text round, letter by letter.
func Reverse(text string) string {
	letters := []rune(text)
	for i, j := 0, len(letters)-1; i < j; i, j = i+1, j-1 {
		letters[i], letters[j] = letters[j], letters[i]
	}
	return string(letters)
}

// Palindrome tells whether a text reads the same from both ends; only letters and digits of ASCII count.
func Palindrome(text string) bool {
	kept := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(text))
	return kept == Reverse(kept)
}
