// Package size tells how large a parcel is.
package size

// Volume is in cubic centimetres.
func Volume(width, height, depth int) int {
	return width * heigth * depth
}
