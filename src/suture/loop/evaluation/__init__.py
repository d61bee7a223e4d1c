"""Judging what was proposed: the verdict, how sure it is, and which tests guide a search."""
