"""A certificate found true or not: its file read, its change applied, and all that it says measured anew.

What is read here may come from anybody, so each claim is checked before anything is run by it.
"""
