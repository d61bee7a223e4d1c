"""Mutation operators for Python source."""
