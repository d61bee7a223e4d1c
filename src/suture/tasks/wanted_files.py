"""Which files a statement asks for."""

from __future__ import annotations

import re

from suture.workspace import is_protected

FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.py)\b(?!\()")
MAKES = re.compile(
    r"\b(?:write|create|make|implement|build|add|generate|produce|save|put|file|module|script)s?\b"
    r"(?:\W+\w+){0,3}?\W+[`'\"]?$",
    re.IGNORECASE,
)
"""What stands before the name of the one file that is to be written, and not of one that is spoken of."""
SEVERAL = re.compile(
    r"\b(?:several|multiple|two|three|four|five|separate)\s+(?:python\s+)?(?:files|modules)\b"
    r"|\b(?:write|create|make|implement|build)\s+(?:an?|the)\s+(?:\w+\s+){0,2}package\b"
    r"|\bpython package\b|\b(?:and|with)\s+(?:its|an?)\s+(?:command[- ]line|cli\b)",
    re.IGNORECASE,
)
MOST_FILES = 30
MOST_CHARS = 100_000
"""Of a statement, from its beginning."""


def wanted_files(statement: str) -> tuple[str, ...]:
    """The Python files that a statement asks for by name, in its order; none where it names none.

    One file alone counts where the words before it ask for it, which "sorts like utils.py does" do not.
    Tests, and what configures them, are no candidate's to write.

    Args:
        statement: In plain words, or a signature with a docstring.
    """
    text = statement[:MOST_CHARS]
    found = [match for match in FILE.finditer(text) if not is_protected(match[1])]
    paths = tuple(dict.fromkeys(match[1] for match in found))[:MOST_FILES]
    if len(paths) > 1:
        return paths
    asked = any(MAKES.search(text[max(0, match.start() - 80) : match.start()]) for match in found)
    return paths if asked else ()


def asks_for_several(statement: str) -> bool:
    """Whether a statement speaks of more than one file, such as a package, without naming them."""
    return SEVERAL.search(statement[:MOST_CHARS]) is not None
