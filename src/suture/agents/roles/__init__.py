"""Roles: for each one the brief that it needs, its prompt, and the type of its answer.

A role never decides anything. What it says is checked by trusted tests, or only informs another role.
"""
