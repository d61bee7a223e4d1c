"""Which functions a change touches, and why the two ends of one fix are never separated."""

from __future__ import annotations

from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.api import HealOptions, heal
from suture.core.settings import Settings
from suture.judge.minimisation.equivalence import changed_functions
from suture.sandbox import BubblewrapSandbox
from suture.testing import ScriptedModel

FILE = (
    "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x)\n\n\n"
    "class Box:\n    def get(self):\n        return 1\n"
)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("return x\n", "return x  # as it is\n", set()),
        ("def f(x):\n", 'def f(x):\n    """Nothing."""\n', set()),
        ("class Box:\n", "class Box:\n    # a box\n", set()),
        ("def g", "def unused(x):\n    return x\n\n\ndef g", set()),
        ("return x\n", "return x + 1\n", {"f"}),
        ("return f(x)", "return f(x) + 1", {"g"}),
        ("def g", "@f\ndef unused(x):\n    return x\n\n\ndef g", None),
        ("return 1", "return 2", None),
        ("def f", "import os\n\n\ndef f", None),
        ("def f", "@staticmethod\ndef f", None),
        ("def g(x):\n    return f(x)\n", "", None),
        ("return x\n", "return (\n", None),
    ],
)
def test_changed_functions_are_found(old: str, new: str, expected: set[str] | None) -> None:
    part, full = {"a.py": FILE.encode()}, {"a.py": FILE.replace(old, new, 1).encode()}
    changes = changed_functions(full, part)
    assert (changes if changes is None else {name for _, name in changes}) == expected


@pytest.mark.parametrize(
    ("path", "is_harmless"), [("rates.json", False), ("run.sh", False), ("notes.md", True)]
)
def test_only_documentation_changes_of_other_files_are_harmless(path: str, is_harmless: bool) -> None:
    for part in ({path: b"2"}, dict[str, bytes]()):
        assert (changed_functions({path: b"1"}, part) is not None) == is_harmless


def test_a_new_function_that_other_code_names_is_a_change() -> None:
    part = {"a.py": b"", "b.py": b"ask = ['helper']\n"}
    assert changed_functions({**part, "a.py": b"def helper():\n    return 1\n"}, part) is None


PAIRS = {
    "a key that one writes and the other reads": (
        {
            "w.py": "def row(c):\n    return {'price': c / 100}\n",
            "r.py": "def total(rows):\n    return sum(r['price'] for r in rows)\n",
            "tests/test_r.py": "from r import total\n\n\n"
            "def test_t():\n    assert total([{'cents': 5}]) == 5\n",
        },
        {
            "w.py": "def row(c):\n    return {'cents': c}\n",
            "r.py": "def total(rows):\n    return sum(r['cents'] for r in rows)\n",
        },
    ),
    "a method and who uses it": (
        {
            "s.py": "class Sq:\n    def __init__(self, a):\n        self.a = a\n\n"
            "    def size(self):\n        return self.a\n",
            "u.py": "def total(shapes):\n    return sum(s.size() ** 2 for s in shapes)\n",
            "tests/test_u.py": "from u import total\n\n\nclass Fake:\n    def size(self):\n        return 9\n"
            "\n\ndef test_t():\n    assert total([Fake()]) == 9\n",
        },
        {
            "s.py": "class Sq:\n    def __init__(self, a):\n        self.a = a\n\n"
            "    def size(self):\n        return self.a * self.a\n",
            "u.py": "def total(shapes):\n    return sum(s.size() for s in shapes)\n",
        },
    ),
}


@pytest.mark.timeout(200)
@pytest.mark.parametrize("pair", PAIRS)
async def test_two_ends_of_one_fix_stay_together(
    pair: str, tmp_path: Path, settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    before, fixed = PAIRS[pair]
    for path, text in before.items():
        (tmp_path / "p" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / path).write_text(text)
    reply = "".join(f"### {path}\n```python\n{text}```\n\n" for path, text in fixed.items())
    quick_settings = settings.model_copy(
        update={"certification": settings.certification.model_copy(update={"mutants": 0})}
    )

    result = await heal(
        tmp_path / "p",
        HealOptions(test=BARE_PYTEST, settings=quick_settings, model=ScriptedModel([reply]), sandbox=sandbox),
    )

    assert result.ok
    assert result.candidate is not None
    assert dict(result.candidate.files) == fixed
