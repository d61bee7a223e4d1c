"""Turn the rows of a table into the result."""
