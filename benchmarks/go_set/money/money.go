// Package money is a small package with bugs to be seeded.
package money

import (
	"errors"
	"fmt"
)

// ErrShare is told where nobody shares a bill.
var ErrShare = errors.New("nobody to share with")

// Split divides cents among people; the first ones pay the rest, a cent each.
func Split(cents, people int) ([]int, error) {
	if people <= 0 {
		return nil, ErrShare
	}
	shares := make([]int, people)
	for i := range shares {
		shares[i] = cents / people
		if i < cents%people {
			shares[i]++
		}
	}
	return shares, nil
}

// Format writes cents as euros, such as 12.05 or -0.40.
func Format(cents int) string {
	sign := ""
	if cents < 0 {
		sign = "-"
		cents = -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}

// Discount takes percent off cents, rounded half up.
func Discount(cents, percent int) int {
	return (cents*(100-percent) + 50) / 100
}
