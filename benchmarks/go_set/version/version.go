// Package version is a small package with bugs to be seeded.
package version

import (
	"strconv"
	"strings"
)

// Parse reads up to three numbers between dots; what lacks is 0.
func Parse(text string) ([3]int, bool) {
	var version [3]int
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) > len(version) {
		return version, false
	}
	for i, part := range parts {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 {
			return [3]int{}, false
		}
		version[i] = number
	}
	return version, true
}

// Compare is -1, 0 or 1 as the first version is older, the same, or newer.
func Compare(a, b [3]int) int {
	for i := range a {
		if a[i] < b[i] {
			return -1
		}
		if a[i] > b[i] {
			return 1
		}
	}
	return 0
}

// Compatible tells whether a version has all that another one promises.
func Compatible(have, want [3]int) bool {
	if have[0] != want[0] {
		return false
	}
	return Compare(have, want) >= 0
}
