"""Small changes that make a source parse.

A parser reports where it stopped, which is the *stop*, and perhaps what it expected. A *rewrite* replaces some lines
around the stop. Each rewritten source is parsed, and those in which the parser gets further are rewritten again. A
*family* is a function that yields rewrites of one sort, such as those of brackets.

This package runs no code and decides nothing: a source that parses is tried and judged like any other candidate.
The default families are those for Python. `token_model`, `block_brackets` and `tree_repair` are for languages with
bracketed blocks. The weights of rewrites are chosen by judgement and not measured, unless a comment says otherwise.
"""

from suture.mutation.syntax_repair.repair_search import ParsableText, SyntaxReader, find_parsable_texts

__all__ = ["ParsableText", "SyntaxReader", "find_parsable_texts"]
