package main

import (
	"fmt"
	"strconv"
)

var commands = []Command{
	{
		Name: "measure",
		Args: []string{"NAME", "HEIGHT"},
		Help: "Record the height of a plant.",
		Run: func(args []string, options Options) (any, error) {
			heights := map[string]float64{}
			if err := load(&heights); err != nil {
				return nil, err
			}
			height, err := strconv.ParseFloat(args[1], 64)
			if err != nil {
				return nil, fmt.Errorf("%s is not a number", args[1])
			}
			heights[args[0]] = height
			return fmt.Sprintf("%s: %v cm", args[0], height), save(heights)
		},
	},
}
