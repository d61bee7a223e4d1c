// Package route plans crossings.
package route

import "example.org/tides"

// Minutes tells how long a crossing takes.
func Minutes(distance int) int {
	return distance * tides.Slowness()
}
