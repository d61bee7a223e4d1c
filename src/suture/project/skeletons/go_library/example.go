// Package project_name: heights of plants.
package project_name

// Growth returns by how much a plant grew from its first height to its last.
func Growth(heights []float64) float64 {
	if len(heights) == 0 {
		return 0
	}
	return heights[len(heights)-1] - heights[0]
}
