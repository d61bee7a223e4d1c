package main

var resources = []any{}
