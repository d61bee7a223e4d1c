"""Smoke checks of a whole project: build it, start it, and compare it with what the statement shows."""
