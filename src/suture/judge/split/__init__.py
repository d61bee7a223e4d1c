"""The split verdict: a judge that holds the tests, a candidate that holds the code, and data between them."""
