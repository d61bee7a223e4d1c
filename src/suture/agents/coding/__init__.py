"""Roles that write code, and the way from their replies to files."""
