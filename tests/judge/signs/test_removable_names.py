"""Only code that a diagnostic calls unused, or defined twice, may go without a sign."""

from __future__ import annotations

import pytest

from suture.judge.signs.diagnostic_signs import find_removable_names


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("`os.path` imported but unused", {"path"}),
        ("'size' is defined but never used.", {"size"}),
        ("'size' is declared but its value is never read.", {"size"}),
        ('Function "size" is not accessed', {"size"}),
        ("methods `a` and `b` are never used", {"a", "b"}),
        ("count declared and not used", {"count"}),
        ("declared and not used: count", {"count"}),
        ("func size is unused (U1000)", {"size"}),
        ('Name "size" already defined on line 3', {"size"}),
        ('Argument 1 to "save" has incompatible type "str"', set()),
        ("Missing return statement", set()),
        ("Unused result of a statement", set()),
    ],
)
def test_only_names_of_unused_code_are_removable(message: str, names: set[str]) -> None:
    assert find_removable_names((message,)) == names
