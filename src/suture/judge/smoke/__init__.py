"""Whole projects are started and looked at from outside: built, run, asked over loopback, fed with data."""
