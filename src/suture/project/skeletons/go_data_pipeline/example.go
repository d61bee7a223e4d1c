package main

import (
	"math"
)

// process returns the orders that have an amount, with tax.
func process(rows []Row) (any, error) {
	result := []Row{}
	for _, row := range rows {
		if amount, ok := row["amount"].(float64); ok {
			row["withTax"] = math.Round(amount*120) / 100
			result = append(result, row)
		}
	}
	return result, nil
}
