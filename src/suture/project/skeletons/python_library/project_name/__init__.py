"""The public functions and classes of the library."""
