"""Intake: turn what a user types into a `Task`, either a statement with tests or a folder to repair.

This package reads the user's files. It runs no code and asks no model.
"""
