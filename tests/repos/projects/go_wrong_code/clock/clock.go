// Package clock counts in minutes of one day.
package clock

const day = 24 * 60

// Add moves a minute of the day, over midnight in both directions.
func Add(minute, by int) int {
	return (minute + by) % day
}
