# ruff: noqa: E501 - each line is one program
"""Sources that do not parse: the text that a beginner intended is among the first repaired ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from failing_projects import make_failing_project
from suture.core.records import CheckOutcome, Counterexample
from suture.core.settings import SandboxSettings
from suture.judge import prepare_suite
from suture.loop.intake.heal_task import build_heal_task
from suture.mutation import apply_edits
from suture.mutation.edits import compute_line_edits
from suture.mutation.syntax_repair import find_parsable_texts
from suture.mutation.syntax_repair.source_lines import find_python_stop
from suture.sandbox import BubblewrapSandbox, discover_interpreter
from suture.search import SearchLimits, find_repairs

pytestmark = pytest.mark.timeout(300)
MAX_RANK = 8
"""The intended text must be among this many repaired texts. The tests of the project choose between them."""
CASES = {
    "colon": ("def f(a)\n    return a\n", "def f(a):\n    return a\n"),
    "colon of a loop": ("def f(a):\n    for x in a\n        g(x)\n", "def f(a):\n    for x in a:\n        g(x)\n"),
    "semicolon": ("def f(a):\n    if a;\n        return 1\n", "def f(a):\n    if a:\n        return 1\n"),
    "bracket": ("def f(a):\n    return g(a\n\n\nx = 1\n", "def f(a):\n    return g(a)\n\n\nx = 1\n"),
    "bracket of a call within": ("def f(a):\n    for i in range(len(a):\n        g(i)\n", "range(len(a)):"),
    "two brackets": ("def f(a):\n    s = [[a, 1\n    return s\n", "s = [[a, 1]]"),
    "wrong bracket": ("def f(a):\n    return a[0)\n", "return a[0]"),
    "bracket too many": ("def f(a):\n    return g(a))\n", "return g(a)\n"),
    "quote": ("def f(a):\n    return g('a)\n", "return g('a')"),
    "quote at the end": ('def f(a):\n    return "a\n', 'return "a"'),
    "quotes of two kinds": ("def f(a):\n    return \"a'\n", 'return "a"'),
    "comma": ("def f(a):\n    return [1 2, a]\n", "[1, 2, a]"),
    "comma of parameters": ("def f(a b):\n    return a\n", "def f(a, b):"),
    "equals": ("def f(a):\n    if a = 1:\n        return 1\n", "if a == 1:"),
    "equals of a subscript": ("def f(a):\n    while a[0] = 1:\n        a.pop()\n", "while a[0] == 1:"),
    "keyword": ("def f(a):\n    retrun a\n", "    return a"),
    "keyword of a loop": ("def f(a):\n    whlie a:\n        a.pop()\n", "while a:"),
    "keyword within": ("def f(a):\n    for x ni a:\n        g(x)\n", "for x in a:"),
    "missing in": ("def f(a):\n    for x range(a):\n        g(x)\n", "for x in range(a):"),
    "missing def": ("f(a):\n    return a\n", "def f(a):"),
    "missing parentheses": ("def f:\n    return 1\n", "def f():"),
    "else if": ("def f(a):\n    if a:\n        return 1\n    else if not a:\n        return 2\n", "elif not a:"),
    "elseif": ("def f(a):\n    if a:\n        return 1\n    elseif not a:\n        return 2\n", "elif not a:"),
    "and": ("def f(a, b):\n    return a && b\n", "return a and b"),
    "or": ("def f(a, b):\n    return a || b\n", "return a or b"),
    "not": ("def f(a):\n    return !a\n", "return not a"),
    "increment": ("def f(a):\n    a++\n    return a\n", "a += 1"),
    "braces": ("def f(a) {\n    return a\n}\n", "def f(a):\n    return a\n"),
    "declaration": ("def f(a):\n    var b = a\n    return b\n", "    b = a"),
    "other comment": ("def f(a):\n    // the same\n    return a\n", "    # the same"),
    "code in a comment's marks": ("def f(a):\n    /*return a*/\n", "    return a"),
    "python 2 print": ("def f(a):\n    print a\n", "print(a)"),
    "python 2 except": ("try:\n    f()\nexcept ValueError, e:\n    g(e)\n", "except ValueError as e:"),
    "python 2 raise": ("def f():\n    raise ValueError, 'no'\n", "raise ValueError('no')"),
    "smart quotes": ("def f():\n    return \u201ca\u201d\n", 'return "a"'),
    "full width": ("def f\uff08a\uff09\uff1a\n    return a\n", "def f(a):"),
    "body at the margin": ("def f(a):\nreturn a\n", "def f(a):\n    return a\n"),
    "method at the margin": ("class A:\ndef f(self):\n    return 1\n", "class A:\n    def f(self):\n        return 1\n"),
    "line too deep": ("def f(a):\n    b = a\n        return b\n", "    b = a\n    return b\n"),
    "line between levels": ("def f(a):\n    if a:\n        return 1\n   return 2\n", "        return 1\n    return 2\n"),
    "stray character": ("def f(a):\n    return a?\n", "return a\n"),
    "number with letters": ("def f(rec):\n    return len(0rec)\n", "len(rec)"),
    "bracket a line too late": ("def f(a, n):\n    for j in range(1, n:\n        if a[j] > 0):\n            g(j)\n", "range(1, n):\n        if a[j] > 0:\n"),
    "docstring cut short": ('def f(a):\n    """The same."\n    return a\n\n\ndef g(a):\n    return a\n', '"""The same."""\n    return a\n'),
    "two faults": ("def f(a)\n    if a = 1:\n        return 1\n", "def f(a):\n    if a == 1:\n"),
    "three faults": ("def f(a)\n    if a = 1 && a:\n        retrun 1\n", "def f(a):\n    if a == 1 and a:\n        return 1\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_intended_text_is_among_the_first(name: str) -> None:
    broken, intended = CASES[name]
    repaired_texts = find_parsable_texts(broken, seconds=60)

    for readable in repaired_texts:
        assert find_python_stop(readable.text) is None
    assert any(intended in readable.text for readable in repaired_texts[:MAX_RANK]), [
        r.label for r in repaired_texts[:MAX_RANK]
    ]


def test_a_source_that_compiles_is_left_alone() -> None:
    assert find_parsable_texts("def f(a):\n    return a\n") == []


def test_the_repair_of_prose_ends() -> None:
    text = "Once upon a time, in a (land [far { away\n" * 40
    assert len(find_parsable_texts(text, seconds=5)) <= 60


def test_line_endings_are_kept() -> None:
    (first, *_) = find_parsable_texts("def f(a)\r\n    return a\r\n")
    assert first.text == "def f(a):\r\n    return a\r\n"


def test_line_edits_turn_one_text_into_the_other() -> None:
    before, after = "a\nb\n\u00e9 = 1\nd", "a\nc\nx\n\u00e9 = 2\nd\n"
    assert apply_edits(before, compute_line_edits(before, after)) == after
    assert compute_line_edits(before, before) == ()


async def test_a_fault_after_a_syntax_error_is_found_too(tmp_path: Path, sandbox: BubblewrapSandbox) -> None:
    broken = "def add(a, b)\n    if a = 0 && b > 1:\n        return b\n    return a - b\n"
    tests = "from sums import add\n\n\ndef test_a():\n    assert add(1, 2) == 3\n\n\ndef test_b():\n    assert add(0, 2) == 2\n"
    (tmp_path / "sums.py").write_text(broken)
    (tmp_path / "test_sums.py").write_text(tests)
    task, _ = build_heal_task(tmp_path, test=BARE_PYTEST)
    python = discover_interpreter(tmp_path, os.environ)
    suite = await prepare_suite(task, sandbox, SandboxSettings(), python)
    assert suite.command is not None
    fact = Counterexample(check_id="t", call="", exception="SyntaxError: expected ':'", file="sums.py")
    failed = CheckOutcome(check_id="t", status="failed", counterexample=fact)
    project = make_failing_project(suite.command, task.files, {"sums.py": broken}, failed, language="python")

    result = await find_repairs(project, SearchLimits(max_seconds=100))
    expected = "def add(a, b):\n    if a == 0 and b > 1:\n        return b\n    return a + b\n"

    assert expected in {apply_edits(broken, proposal.edits) for proposal in result.plausible}
