"""Prompts: the files that hold them, the parts that may shrink, and what fits into a model."""
