"""Weights of embedded models: the catalogue with hashes, the verified cache, and the download."""
