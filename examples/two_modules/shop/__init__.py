"""A shop: what it has, and how it ships orders."""
