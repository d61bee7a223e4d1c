"""Mutation testing of a change: small changes of the touched code, and whether any test notices them.

The operators come from `suture.mutation`. This package chooses the mutants by a fixed rule, runs them in the
sandbox, and counts; it decides nothing.
"""
