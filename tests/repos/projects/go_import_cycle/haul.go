// Package haul moves what lies in a depot.
package haul

import "example.org/haul/depot"

// Days needed at four trips a day.
func Days(boxes int) int {
	return (depot.Trips(boxes) + 3) / 4
}
