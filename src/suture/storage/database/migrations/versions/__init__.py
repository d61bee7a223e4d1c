"""Versions of the schema, one file each."""
