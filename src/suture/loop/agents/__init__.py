"""An agent's turn: a copy of the project that may be changed at will, and what became of it as texts.

What comes of a turn is a candidate like any other: nothing that is written here decides anything.
"""
