// Package parcel prices parcels.
package parcel

import "example.org/parcel/size"

// Price is in cents.
func Price(width, height, depth int) int {
	return 300 + size.Volume(width, height, depth)/1000
}
