"""Dates of shipping."""
