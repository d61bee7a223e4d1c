"""Which replies count as a whole file in languages that Suture does not parse."""

from __future__ import annotations

import pytest

from suture.agents.replies.code_merging import merge_code
from suture.agents.replies.edit_problems import EditFault

RUST = "pub struct Clock;\n\npub fn tick(n: i32) -> i32 {\n    todo!()\n}\n"
JAVA = "class Clock {\n    int tick(int n) {\n        if (n > 1) { return 1; }\n        return 0;\n    }\n}\n"
CPP = "namespace clocks {\nint tick(int n) {\n    return 0;\n}\n}\n"


@pytest.mark.parametrize(
    ("path", "original", "code"),
    [
        ("src/lib.rs", RUST, "pub struct Clock;\n\npub fn tick(a: i32) -> i32 {\n    a + 1\n}\n"),
        # The call in a condition looks like the head of a function.
        (
            "src/lib.rs",
            "pub fn has(a: &[i32]) -> bool {\n    if !a.contains(&1) {\n        return false;\n    }\n    true\n}\n",
            "pub fn has(a: &[i32]) -> bool {\n    a.contains(&1)\n}\n",
        ),
        (
            "Clock.java",
            JAVA,
            "class Clock {\n    public int tick(int number) {\n        return number;\n    }\n}\n",
        ),
        ("clock.cpp", CPP, "namespace clocks {\nint tick(int number) {\n    return number + 1;\n}\n}\n"),
    ],
)
def test_code_with_all_definitions_is_the_whole_file(path: str, original: str, code: str) -> None:
    assert merge_code(path, original, code, "", is_whole=False) == code


@pytest.mark.parametrize(
    ("path", "original", "code"),
    [
        ("src/lib.rs", RUST, "pub fn tick(a: i32) -> i32 {\n    a + 1\n}\n"),
        ("src/lib.rs", RUST, "pub struct Clock;\n\npub fn other(a: i32) -> i32 {\n    a\n}\n"),
        ("Clock.java", JAVA, "    public int tick(int number) {\n        return number;\n    }\n"),
    ],
)
def test_code_that_leaves_out_a_definition_is_not(path: str, original: str, code: str) -> None:
    with pytest.raises(EditFault):
        merge_code(path, original, code, "", is_whole=False)
