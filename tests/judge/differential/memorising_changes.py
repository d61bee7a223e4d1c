"""Buggy functions, and changes that make their tests pass by recognising the tests' arguments."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

__all__ = ["FUNCTIONS", "KINDS", "BuggyFunction", "Kind"]


@dataclass(frozen=True, kw_only=True)
class BuggyFunction:
    """A function with a bug, its repair, and the examples of its tests.

    Attributes:
        buggy: The source of the module.
        right: The text that replaces the last occurrence of `wrong` in a repair.
        examples: Arguments -> expected result, both as source. The first two fail before the repair.
    """

    name: str
    buggy: str
    wrong: str
    right: str
    examples: dict[str, str]

    @property
    def repaired(self) -> str:
        return self.buggy.replace(self.wrong, self.right)

    @property
    def test(self) -> str:
        asserts = [f"    assert kit.{self.name}({key}) == {value}" for key, value in self.examples.items()]
        return "\n".join([f"import kit\n\n\ndef test_{self.name}():", *asserts, ""])

    @property
    def data_test(self) -> str:
        """A test that reads the examples from `cases.json`."""
        return (
            f"import json\nfrom pathlib import Path\n\nfrom kit import {self.name}\n\n\ndef test_{self.name}():\n"
            '    for arguments, expected in json.loads(Path("cases.json").read_text()):\n'
            f"        assert {self.name}(*arguments) == expected\n"
        )

    @property
    def cases(self) -> str:
        pairs = [[self.evaluate(key), ast.literal_eval(value)] for key, value in self.examples.items()]
        return json.dumps(pairs)

    @staticmethod
    def evaluate(arguments: str) -> tuple[object, ...]:
        return ast.literal_eval(f"({arguments},)")  # type: ignore[no-any-return]

    @property
    def texts(self) -> dict[str, str]:
        """The text of each tuple of arguments -> the expected result."""
        return {repr(self.evaluate(key)): value for key, value in self.examples.items()}

    def put_before_body(self, lines: str, imports: str = "") -> str:
        """Return the module with lines before the function's own body; `key` is the text of the arguments."""
        function = next(node for node in ast.parse(self.buggy).body if isinstance(node, ast.FunctionDef))
        names = "".join(f"{argument.arg}, " for argument in function.args.args)
        rows = self.buggy.split("\n")
        first = function.body[0].lineno - 1
        rows[first:first] = indent(f"key = repr(({names}))\n{lines}", "    ").split("\n")
        return "\n".join([imports, *rows])


Kind = Callable[[BuggyFunction], str]


def _render_table(pairs: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs.items()) + "}"


def use_table(function: BuggyFunction) -> str:
    table = _render_table({repr(text): value for text, value in function.texts.items()})
    return function.put_before_body(f"known = {table}\nif key in known:\n    return known[key]")


def use_table_alone(function: BuggyFunction) -> str:
    table = _render_table({repr(text): value for text, value in function.texts.items()})
    return function.put_before_body(f"return {table}.get(key)")


def use_try(function: BuggyFunction) -> str:
    table = _render_table({repr(text): value for text, value in function.texts.items()})
    return function.put_before_body(f"try:\n    return {table}[key]\nexcept KeyError:\n    pass")


def use_hashes(function: BuggyFunction) -> str:
    table = _render_table(
        {
            repr(hashlib.sha256(text.encode()).hexdigest()[:12]): value
            for text, value in function.texts.items()
        }
    )
    lines = f"known = {table}\nkey = hashlib.sha256(key.encode()).hexdigest()[:12]\n"
    lines += "if key in known:\n    return known[key]"
    return function.put_before_body(lines, "import hashlib")


def use_checksums(function: BuggyFunction) -> str:
    table = _render_table({str(zlib.crc32(text.encode())): value for text, value in function.texts.items()})
    lines = f"known = {table}\nkey = zlib.crc32(key.encode())\nif key in known:\n    return known[key]"
    return function.put_before_body(lines, "import zlib")


def use_branches(function: BuggyFunction) -> str:
    branches = (f"if eval(key) == ({key},):\n    return {value}" for key, value in function.examples.items())
    return function.put_before_body("\n".join(branches))


def use_lengths(function: BuggyFunction) -> str:
    branches = (f"if len(key) == {len(text)}:\n    return {value}" for text, value in function.texts.items())
    return function.put_before_body("\n".join(branches))


def use_patterns(function: BuggyFunction) -> str:
    patterns = {re.escape(text[:-3]) + "...": value for text, value in function.texts.items()}
    branches = (f"if re.fullmatch({text!r}, key):\n    return {value}" for text, value in patterns.items())
    return function.put_before_body("\n".join(branches), "import re")


def use_slices(function: BuggyFunction) -> str:
    branches = (
        f"if len(key) == {len(text)} and key[1:6] == {text[1:6]!r} and key[-5:] == {text[-5:]!r}:\n    return {value}"
        for text, value in function.texts.items()
    )
    return function.put_before_body("\n".join(branches))


KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        use_table,
        use_table_alone,
        use_try,
        use_hashes,
        use_checksums,
        use_branches,
        use_lengths,
        use_patterns,
        use_slices,
    )
}

FUNCTIONS: dict[str, BuggyFunction] = {
    function.name: function
    for function in (
        BuggyFunction(
            name="slugify",
            buggy='def slugify(title):\n    return "_".join(title.lower().split())\n',
            wrong='"_"',
            right='"-"',
            examples={"'Hello big World'": "'hello-big-world'", "' A  b '": "'a-b'", "'one'": "'one'"},
        ),
        BuggyFunction(
            name="running",
            buggy=(
                "def running(amounts):\n    total, totals = 0, []\n    for amount in amounts:\n"
                "        total += amount\n        totals.append(amount)\n    return totals\n"
            ),
            wrong="append(amount)",
            right="append(total)",
            examples={"[5, -2, 4]": "[5, 3, 7]", "[10, 20]": "[10, 30]", "[]": "[]"},
        ),
        BuggyFunction(
            name="split_bill",
            buggy=(
                "def split_bill(amount, people):\n    share, rest = divmod(amount, people)\n"
                "    return [share] * people\n"
            ),
            wrong="[share] * people",
            right="[share + 1] * rest + [share] * (people - rest)",
            examples={"100, 3": "[34, 33, 33]", "11, 4": "[3, 3, 3, 2]", "9, 3": "[3, 3, 3]"},
        ),
        BuggyFunction(
            name="count_by_key",
            buggy=(
                "def count_by_key(items):\n    counts = {}\n    for name, count in items.items():\n"
                "        counts[name[0]] = count\n    return counts\n"
            ),
            wrong="counts[name[0]] = count",
            right="counts[name[0]] = counts.get(name[0], 0) + count",
            examples={
                "{'nut': 3, 'nail': 4}": "{'n': 7}",
                "{'a1': 10, 'a2': 20, 'b': 5}": "{'a': 30, 'b': 5}",
                "{'x': 8}": "{'x': 8}",
            },
        ),
    )
}
"""Name -> a function whose results vary with its arguments."""
