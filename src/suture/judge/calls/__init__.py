"""The split verdict on one function of another language: the host holds the examples."""
