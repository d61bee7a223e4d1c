"""The user's own test command: run, reported test by test where that is pytest, and not believed blindly."""
