"""One turn of an agent: a model with tools, or the user's own program, changes a copy of the project.

The change becomes a candidate like any other. Nothing in this package decides whether it is good.
"""
