"""Paid model calls of a run: reserved in the budget first, fitted to the model, recorded before they are
used.
"""
