"""Find names of a JavaScript, TypeScript or Go file that a change makes another name's value, or a kind of it.

A test that expects one of two errors, states or classes then accepts the other one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from suture.judge.capabilities.use import MERGED_NAME, Use

DECLARATION = re.compile(
    r"^[ \t]*(?:export[ \t]+)?(?:(?:var|const|let)[ \t]+)?(\w+)(?:[ \t]+error)?[ \t]*=[ \t]*(\S.*?)[ \t]*;?[ \t]*$",
    re.MULTILINE,
)
"""A declaration in one line, outside of functions or in a group of Go's."""
CLASS = re.compile(
    r"^(?:export[ \t]+(?:default[ \t]+)?)?class[ \t]+(\w+)[ \t]+extends[ \t]+(\w+)", re.MULTILINE
)
WRAPPED = re.compile(r"(?:fmt\.Errorf|errors\.Join)\((.*)\)")
"""A call of Go whose result is also each error that it gets."""


def find_merged_names(before: str, after: str) -> Iterator[Use]:
    """Yield each name that both versions declare, and of which only the new one says that it is another of them."""
    old, new = _read_declarations(before), _read_declarations(after)
    for name, (value, line) in new.items():
        if name not in old or old[name][0] == value:
            continue
        others = (set(old) & set(new)) - {name}
        wrapped = WRAPPED.fullmatch(value)
        parts = set(re.findall(r"\w+", wrapped[1])) if wrapped is not None else {value}
        if parts & others and not set(re.findall(r"\w+", old[name][0])) & parts & others:
            yield Use(
                code="loosens_comparison", name=f"{MERGED_NAME}{name}", line=line, key=f"{MERGED_NAME}{name}"
            )


def _read_declarations(text: str) -> dict[str, tuple[str, int]]:
    """Return name -> (value or base class, line); the first declaration of a name counts."""
    found: dict[str, tuple[str, int]] = {}
    for match in (*DECLARATION.finditer(text), *CLASS.finditer(text)):
        is_inner = match[0][:1] in " \t" and not re.search(
            r"^(?:var|const)\s*\($", text[: match.start()], re.MULTILINE
        )
        if not is_inner:
            found.setdefault(match[1], (match[2], text.count("\n", 0, match.start()) + 1))
    return found
