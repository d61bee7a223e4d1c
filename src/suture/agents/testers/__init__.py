"""Roles that write tests, and what of those can be used."""
