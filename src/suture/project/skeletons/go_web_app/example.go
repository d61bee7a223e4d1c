package main

import (
	"errors"
)

type Plant struct {
	Name   string  `json:"name"`
	Height float64 `json:"height,omitempty"`
}

func (p Plant) Validate() error {
	if p.Height < 0 {
		return errors.New("height must not be negative")
	}
	return nil
}

var resources = []any{Plant{}}
