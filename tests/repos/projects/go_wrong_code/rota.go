// Package rota plans shifts around the clock.
package rota

import (
	"fmt"

	"example.org/rota/clock"
)

// Label names a shift by its first and last minute.
func Label(start, length int) string {
	end := clock.Add(start, length)
	return fmt.Sprintf("%02d:%02d-%02d:%02d", start/60, start%60, end/60, end%60)
}
