"""Differential testing: inputs on which candidates that pass the same checks behave differently.

This package generates inputs, calls candidates with them, and groups candidates by their answers. It decides
no verdict, and it must not call a model.
"""
