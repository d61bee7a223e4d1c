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
    r"^(?:export[ \t]+(?:default[ \t]+)?)?class[ \t]+(\w+)[ \t]+extends[ \t]+(?:\(\d+,[ \t]*)?(\w+)",
    re.MULTILINE,
)
CLASS_VALUE = re.compile(r"class(?:[ \t]+\w+)?[ \t]+extends[ \t]+(?:\(\d+,[ \t]*)?(\w+)\)?.*")
"""A class expression, as in `const Denied = class extends NotFound {}`."""
TEXT = re.compile(r"([\"'`])[^\"'`]+\1")
OBJECT = re.compile(
    r"^(?:export[ \t]+)?const[ \t]+(\w+)[ \t]*=[ \t]*(?:Object\.freeze\()?\{([^{}]*)\}", re.MULTILINE
)
"""An object of constants, as in `const STATUS = { OPEN: 'open' }`."""
MEMBER = re.compile(r"(\w+)[ \t]*:[ \t]*([\"'`][^\"'`]+[\"'`])")
EXPORTED = re.compile(
    r"^(?:module\.)?exports(?:\.(\w+))?[ \t]*=[ \t]*(?:exports\.)?(\w+|\{[^{}]*\});?[ \t]*$|^export[ \t]*(\{[^{}]*\})",
    re.MULTILINE,
)
EXPORTED_PAIR = re.compile(r"(\w+)[ \t]*:[ \t]*(\w+)|(\w+)[ \t]+as[ \t]+(\w+)")
"""A name that a module exports under the name of another value: `{ Denied: NotFound }`, `{ NotFound as Denied }`."""
PROTOTYPE = re.compile(
    r"^Object\.setPrototypeOf\((\w+)(?:\.prototype)?,[ \t]*(\w+)(?:\.prototype)?\)", re.MULTILINE
)
INITIALISED = re.compile(r"^func init\(\) \{([^{}]*)\}", re.MULTILINE)
WRAPPED = re.compile(r"(?:fmt\.Errorf|errors\.Join)\((.*)\)")
"""A call of Go whose result is also each error that it gets."""


def find_merged_names(before: str, after: str) -> Iterator[Use]:
    """Yield each name that both versions declare, and of which only the new one says that it is another of them."""
    old, new = _read_declarations(before), _read_declarations(after)
    for name, (value, line) in new.items():
        if name not in old or old[name][0] == value:
            continue
        others = (set(old) & set(new)) - {name}
        alias = new.get(value, ("", 0))[0] if value not in old else ""
        value = alias if alias in others else value
        wrapped, derived = WRAPPED.fullmatch(value), CLASS_VALUE.fullmatch(value)
        parts = (
            set(re.findall(r"\w+", wrapped[1]))
            if wrapped is not None
            else {derived[1] if derived is not None else value}
        )
        twins = [other for other in others if TEXT.fullmatch(value) and new[other][0] == value]
        is_new_twin = any(old[other][0] != old[name][0] and _share_group(name, other) for other in twins)
        is_new_twin = is_new_twin and ("." not in name or _spells_itself(name, old[name][0]))
        is_merged = parts & others and not set(re.findall(r"\w+", old[name][0])) & parts & others
        if is_merged or is_new_twin:
            yield _get_use(name, line)
    old_pairs = _read_second_names(before)
    for name, (value, line) in _read_second_names(after).items():
        if {name, value} <= old.keys() and name != value and old_pairs.get(name, ("",))[0] != value:
            yield _get_use(name, line)


def _share_group(name: str, other: str) -> bool:
    """Return whether two constants are members of the same object, or both are none."""
    return name.rpartition(".")[0] == other.rpartition(".")[0]


def _spells_itself(name: str, value: str) -> bool:
    """Return whether the value of a constant is its name, as in `OPEN: 'open'`; a lookup table holds other values."""
    own = name.rpartition(".")[2]
    return re.sub(r"[\W_]", "", own).lower() == re.sub(r"[\W_]", "", value).lower()


def _get_use(name: str, line: int) -> Use:
    shown = f"{MERGED_NAME}{name}"
    return Use(code="loosens_comparison", name=shown, line=line, key=shown)


def _read_second_names(text: str) -> dict[str, tuple[str, int]]:
    """Return each name to which code gives another one's value or class after both are declared -> (it, line)."""
    found: dict[str, tuple[str, int]] = {}
    for match in EXPORTED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match[1] and match[2] and not match[2].startswith("{"):
            found[match[1]] = (match[2], line)
        for key, value, original, alias in EXPORTED_PAIR.findall(match[2] or match[3] or ""):
            found[key or alias] = (value or original, line)
    for match in PROTOTYPE.finditer(text):
        found[match[1]] = (match[2], text.count("\n", 0, match.start()) + 1)
    for match in INITIALISED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found |= {
            name: (value, line)
            for name, value in re.findall(
                r"^\s*(\w+)(?:, \w+)* = (\w+)(?:, .*?)?\s*$", match[1], re.MULTILINE
            )
        }
    return found


def _read_declarations(text: str) -> dict[str, tuple[str, int]]:
    """Return name -> (value or base class, line); the first declaration of a name counts."""
    found: dict[str, tuple[str, int]] = {}
    for match in (*DECLARATION.finditer(text), *CLASS.finditer(text)):
        is_inner = match[0][:1] in " \t" and not re.search(
            r"^(?:var|const)\s*\($", text[: match.start()], re.MULTILINE
        )
        if not is_inner:
            found.setdefault(match[1], (match[2], text.count("\n", 0, match.start()) + 1))
    for match in OBJECT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        found |= {f"{match[1]}.{key}": (value, line) for key, value in MEMBER.findall(match[2])}
    return found
