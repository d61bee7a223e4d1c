"""Find what silences a tool in place of a repair: comments that switch rules off, and directives of a build."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

SUPPRESSION = re.compile(
    r"#\s*(?:(?:ruff|flake8)\s*:\s*)?noqa\b"
    r"|#\s*type:\s*ignore\b|#\s*mypy\s*:|#\s*pyright\s*:|#\s*pylint\s*:\s*(?:disable|skip)|#\s*ruff\s*:\s*(?:disable|isort)"
    r"|#\s*(?:fmt|yapf)\s*:\s*(?:off|skip)|#\s*isort\s*:\s*(?:skip|off)"
    r"|@(?:\w+\.)?no_type_check\b|\bnot\s+(?:typing\.)?TYPE_CHECKING\b"
    r"|\beslint-disable\b|\beslint-env\b|/[*/]\s*eslint\s+[\w@\"'-]+\s*:|/[*/]\s*globals?\s"
    r"|@ts-(?:ignore|nocheck|expect-error)\b|\bprettier-ignore\b|\bbiome-ignore\b"
    r"|//\s*nolint\b|//\s*#nosec\b|//\s*lint:(?:file-)?ignore\b|^//go:build\b|^//\s*\+build\b"
    r"|\bCode generated .*DO NOT EDIT\b|//go:linkname\b|^\s*import\s+\"C\""
    r"|^[ \t]*_ = \w+(?:\.\w+)*;?[ \t]*$|^var _ = "
    r"|#!?\[\s*(?:cfg_attr\b.*)?(?:allow|expect)\s*\(|#!?\[\s*rustfmt::skip|#!?\[\s*cfg\s*\(",
    re.MULTILINE,
)
"""Matches what keeps a tool from reporting what it finds, in the languages of the table of tools."""
WIDENINGS: Mapping[str, re.Pattern[str]] = {
    "Any": re.compile(r"\bAny\b(?!\s*(?:,|\)|$))|(?:->|:|\[|\||,)\s*(?:typing\.|t\.)?Any\b"),
    "cast": re.compile(r"\bcast\s*\("),
    "getattr": re.compile(r"\bgetattr\s*\("),
    "object": re.compile(r"(?:->|:)\s*object\b"),
    "any": re.compile(r"(?::|<|\||&|,|\bas)\s*any\b"),
    "unknown": re.compile(r"\bas\s+unknown\b|:\s*unknown\b"),
    "interface{}": re.compile(r"\binterface\s*\{\s*\}"),
    "!": re.compile(r"[\w\)\]]!(?=[.;,)\[])"),
}
"""Name of a way to widen or to assert a type -> its pattern."""
PYTHON_WIDENINGS, SCRIPT_WIDENINGS = ("Any", "cast", "getattr", "object"), ("any", "unknown", "!")
GO_WIDENINGS = ("interface{}", "any")


def find_new_suppressions(before: str, after: str) -> tuple[str, ...]:
    """Return the suppressions that a change of a file adds, each as it is written."""
    return tuple(sorted((_count(SUPPRESSION, after) - _count(SUPPRESSION, before)).elements()))


def find_new_widenings(path: str, before: str, after: str) -> tuple[str, ...]:
    """Return the ways in which a change of a file newly widens or asserts types."""
    kinds: tuple[str, ...] = SCRIPT_WIDENINGS
    if path.endswith((".py", ".pyi")):
        kinds = PYTHON_WIDENINGS
    elif path.endswith(".go"):
        kinds = GO_WIDENINGS
    return tuple(
        kind for kind in kinds if len(WIDENINGS[kind].findall(after)) > len(WIDENINGS[kind].findall(before))
    )


def _count(pattern: re.Pattern[str], text: str) -> Counter[str]:
    return Counter(" ".join(match.group().split()) for match in pattern.finditer(text))
