"""Ordering: which candidates to try, and in which order: reverts, single changes, compound changes."""
