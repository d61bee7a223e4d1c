"""Which functions a change alters, and whether it alters an import."""

from __future__ import annotations

import pytest

from suture.loop.judgement.changed_functions import find_changed_functions

MODULE = """import os
LIMIT = 1

@register
def first(a):
    return a

def second():
    return 2

class Cart:
    size = 1

    def total(self):
        return 1
"""


@pytest.mark.parametrize(
    ("old", "new", "lines", "alters_import"),
    [
        ("return a", "return a + 1", {4}, False),
        ("return 1", "return 3", {14}, False),
        ("import os", "import os\nimport sys", set(), False),
        ("import os", "# A comment\nimport os", set(), False),
        ("LIMIT = 1", "LIMIT = 2", set(), True),
        ("LIMIT = 1", "LIMIT = 1\nLIMIT = 2", set(), True),
        ("@register", "@register_all", {4}, True),
        ("def second():\n    return 2\n", "", {8}, True),
        ("class Cart:", "def third():\n    return 3\n\nclass Cart:", set(), False),
        ("class Cart:", "@register\ndef third():\n    return 3\n\nclass Cart:", set(), True),
        ("class Cart:", "class Cart(dict):", set(), True),
        ("    size = 1\n", "    size = 2\n", set(), True),
        ("    size = 1\n", "    size = 1\n\n    def other(self):\n        return 2\n", {14}, False),
        ("    size = 1\n", "    size = 1\n\n    def __len__(self):\n        return 2\n", {14}, True),
        ("return 2", "return (", set(), True),
    ],
)
def test_a_change_alters_its_functions_and_the_import_where_statements_run_then(
    old: str, new: str, lines: set[int], alters_import: bool
) -> None:
    assert old in MODULE
    changed = find_changed_functions(MODULE, MODULE.replace(old, new))
    assert (changed.lines, changed.alters_import) == (lines, alters_import)
