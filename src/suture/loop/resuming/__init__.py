"""Runs that exist already: gone on with, forked, or saved after they were cut short."""
