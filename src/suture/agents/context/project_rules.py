"""Read the rules that a project gives to those who change its code, as untrusted text of limited length."""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import basename

from suture.project.workspace import decode_text

RULE_FILES = ("AGENTS.md", "CLAUDE.md")
"""Files of rules for agents. The first one that exists is read."""


CONTRIBUTING_FILES = re.compile(r"(?:\.github/|docs/)?CONTRIBUTING(?:\.\w+)?", re.IGNORECASE)


CODE_HEADING = re.compile(
    r"\b(?:cod(?:e|ing)|style|conventions?|compatib|python|typ(?:e|ing)|lint)", re.IGNORECASE
)
"""Words in headings of sections about code; the rest of a file of rules is about reports and releases."""


HEADING = re.compile(r"^(?:#{1,6}\s+(?P<title>.+)|(?P<underlined>\S.*)\n(?:={3,}|-{3,})\s*$)", re.MULTILINE)


MAX_RULE_CHARS = 1600
"""Maximum characters of the rules, about 400 tokens. Chosen by judgement; not measured."""


MAX_SECTION_CHARS = 800


def read_project_rules(files: Mapping[str, bytes]) -> tuple[str, str, int]:
    """Return `(path, text, number of characters left out)` of a project's rules; empty strings if it has none."""
    for name in RULE_FILES:
        if name in files:
            text = decode_text(files[name]).strip()
            return name, text[:MAX_RULE_CHARS], max(0, len(text) - MAX_RULE_CHARS)
    for path in sorted(files):
        if CONTRIBUTING_FILES.fullmatch(path) and basename(path):
            text = _read_code_sections(decode_text(files[path]))
            if text:
                return path, text[:MAX_SECTION_CHARS], max(0, len(text) - MAX_SECTION_CHARS)
    return "", "", 0


def _read_code_sections(text: str) -> str:
    """Return the sections about code and its style."""
    headings = list(HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    sections = [
        text[heading.start() : end].strip()
        for heading, end in zip(headings, ends, strict=False)
        if CODE_HEADING.search(heading["title"] or heading["underlined"] or "")
    ]
    return "\n\n".join(section for section in sections if "\n" in section)
