// Package dates is a small package with bugs to be seeded.
package dates

// Leap tells whether a year of the Gregorian calendar has a 29th of February.
func Leap(year int) bool {
	return year%4 == 0 && (year%100 != 0 || year%400 == 0)
}

// Days is how many days a month has; 0 for no month.
func Days(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if Leap(year) {
			return 29
		}
		return 28
	case 1, 3, 5, 7, 8, 10, 12:
		return 31
	}
	return 0
}

// Ordinal is the number of a day in its year, from 1.
func Ordinal(year, month, day int) int {
	total := day
	for m := 1; m < month; m++ {
		total += Days(year, m)
	}
	return total
}

// Between is how many days lie between two days of one year; never negative.
func Between(year, month, day, toMonth, toDay int) int {
	days := Ordinal(year, toMonth, toDay) - Ordinal(year, month, day)
	if days < 0 {
		return -days
	}
	return days
}
