"""Prompts: their files, the parts that may shrink, prefills, and fitting into a model's context."""
