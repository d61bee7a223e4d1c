"""Candidates that pass the same checks, told apart by inputs that no check has."""
