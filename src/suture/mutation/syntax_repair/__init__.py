"""Sources that cannot be read: small changes with which they can.

What reads a language says where it stopped, and at best what it missed; each proposal is read, and what gets
further goes on. No code is run here, and nothing is decided: what can be read is tried and judged like any
other candidate. The families are Python's where nothing else is said; `whole`, `likely` and `layout` are for
languages with brackets around their blocks.
"""

from suture.mutation.syntax_repair.repair_search import RewriteFamily, ParsableText, SyntaxReader, find_parsable_texts

__all__ = ["RewriteFamily", "ParsableText", "SyntaxReader", "find_parsable_texts"]
