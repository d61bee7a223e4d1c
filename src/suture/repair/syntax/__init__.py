"""Sources that are no Python yet: small changes with which they compile.

CPython says where it stopped and what it missed; each proposal is compiled, and what gets further goes on. No
code is run here, and nothing is decided: what compiles is tried and judged like any other candidate.
"""

from suture.repair.syntax.readable import Readable, readable_texts

__all__ = ["Readable", "readable_texts"]
