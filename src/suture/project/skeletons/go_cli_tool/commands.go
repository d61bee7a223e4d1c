package main

var commands = []Command{}
