"""Roles: for each one the brief that it needs, its prompt, and the reading of its answer.

A role never decides anything. What it says is checked by the deciding checks, or only informs another role. An answer
that cannot be used raises `MalformedReply`.
"""
