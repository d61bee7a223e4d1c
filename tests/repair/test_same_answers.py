"""Answers that are equal are told as equal, and inputs for one seed are the same in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from suture.checks import prepare_suite
from suture.repair import Edit, Proposal
from suture.repair.inside.suture_digest import digest_of
from suture.repair.trials.comparing import compare
from suture.sandbox import BubblewrapSandbox, discover_interpreter
from suture.settings import SandboxSettings
from suture.tasks.building import heal_task

ONE, OTHER = {0, 8}, {8, 0}
CODE = """\
class Box:
    pass


def both(n):
    return {n, 8}


def box(n):
    return [Box() for _ in range(n)]
"""


def test_equal_sets_have_one_text() -> None:
    assert repr(ONE) != repr(OTHER)  # which is why
    assert digest_of(ONE) == digest_of(OTHER) == "{0, 8}"
    assert digest_of(({"k": [OTHER]}, (1,))) == "({'k': [{0, 8}]}, (1,))"
    assert digest_of([frozenset({10, 9}), set(), {}]) == "[frozenset({9, 10}), set(), {}]"
    assert digest_of("{") == repr("{")
    assert digest_of({1: 2, 0: 3}) == "{1: 2, 0: 3}"  # in which order a mapping was filled may be the point
    assert digest_of(object()) == digest_of(object())
    assert len(digest_of("x" * 9000)) == 4000


def test_a_value_that_holds_itself_has_a_text() -> None:
    value: list[object] = [{1}]
    value.append(value)
    assert digest_of(value).startswith("[{1}, [{1}, ")


def proposal(old: str, new: str) -> Proposal:
    start = CODE.index(old)
    edit = Edit(start=start, end=start + len(old), text=new)
    return Proposal(path="box.py", edits=(edit,), label=new, score=1.0, operators=())


async def test_repairs_that_differ_only_in_how_they_fill_a_set_are_alike(
    tmp_path: Path, sandbox: BubblewrapSandbox
) -> None:
    (tmp_path / "box.py").write_text(CODE)
    (tmp_path / "test_box.py").write_text("from box import both\n\n\ndef test_both():\n    assert both(1)\n")
    task, _ = heal_task(tmp_path, test="python -m pytest -q")
    suite = await prepare_suite(task, sandbox, SandboxSettings(), discover_interpreter(tmp_path, {}))
    assert suite.command is not None
    proposals = [proposal("{n, 8}", "{8, n}"), proposal("range(n)", "range(n + 0)"), proposal("8", "9")]
    calls = [("box.py", "both", "(0,)"), ("box.py", "box", "(2,)")]
    answers = await compare(suite.command, proposals, calls, {"box.py": CODE}, 100)
    assert answers[0] == answers[1] == ["({0, 8}, (0,))", "([<box.Box object>, <box.Box object>], (2,))"]
    assert answers[2][0] == "({0, 9}, (0,))"


def test_inputs_of_one_seed_are_the_same_in_every_process() -> None:
    program = (
        "import random\nfrom suture.checks.differential.inputs import inputs_near, read_arguments\n"
        "seeds = read_arguments([\"({'aa', 'bb', 'cc', 'dd'},)\", \"({'aa', 'zz', 'ee'},)\"])\n"
        "print([sorted(new[0]) for new in inputs_near(seeds, 20, random.Random(0))])\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "3")
    }
    assert len(told) == 1
