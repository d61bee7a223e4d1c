"""Suture."""
