// Package depot keeps boxes.
package depot

import "example.org/haul/truck"

// Trips tells how often a truck must go for so many boxes.
func Trips(boxes int) int {
	return (boxes + truck.Load - 1) / truck.Load
}

// Box is a box's weight.
const Box = 20
