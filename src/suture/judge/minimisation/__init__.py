"""Minimisation: which parts of a change can be left out while all checks pass and all answers stay the same.

This package proposes smaller changes. Whether one passes is decided by the trusted suite.
"""
