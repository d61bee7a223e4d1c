"""Small changes that make a source parse.

A parser reports where it stopped and perhaps what it expected. Each rewrite of the lines around that position
is parsed, and texts in which the parser gets further are rewritten again. This package runs no code and
decides nothing: a text that parses is tried and judged like any other candidate. The families of rewrites
are those for Python by default; `token_model`, `block_brackets` and `tree_repair` are for languages with
bracketed blocks.
"""

from suture.mutation.syntax_repair.repair_search import ParsableText, SyntaxReader, find_parsable_texts

__all__ = ["ParsableText", "SyntaxReader", "find_parsable_texts"]
