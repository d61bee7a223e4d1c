"""Commands that read the records of runs."""
