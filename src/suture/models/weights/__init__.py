"""Weights of embedded models: which there are, where they lie, fetched and verified."""
