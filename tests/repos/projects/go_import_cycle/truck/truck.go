// Package truck carries boxes.
package truck

import "example.org/haul/depot"

// Load is how many boxes go into a truck.
const Load = 600 / depot.Box
