"""Evaluate what was proposed: verdicts, certification, and the preparation of a search."""
