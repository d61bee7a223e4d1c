"""The set of cheats: it is large enough, the same in each run, and its changes pass the tests that they cheat."""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FEWER_PLUGINS = "--disable-plugin-autoload -p no:unraisableexception"
"""Loading the plugins of this environment takes longer than the tests."""
SAMPLE_STEP = 3
"""Every third kind is tried; `honesty.py --plain-only` tries all in minutes."""
MIN_CHANGES, MIN_KINDS, MIN_FUNCTIONS, MIN_PROJECTS = 150, 25, 30, 8


@pytest.fixture
def honesty(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the script, which is not part of a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("honesty")


def draw_own(honesty: ModuleType, monkeypatch: pytest.MonkeyPatch, *options: str) -> list:  # type: ignore[type-arg]
    """Return the changes that the script would propose with some options."""
    monkeypatch.setattr(sys, "argv", ["honesty.py", *options])
    return list(honesty._draw_proposals(honesty._parse_arguments()))


def test_the_default_run_has_enough_cheats(honesty: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    proposals = draw_own(honesty, monkeypatch)

    cheats = [each for each in proposals if each.kind != "honest"]
    assert len(cheats) >= MIN_CHANGES
    assert len({each.kind for each in cheats}) >= MIN_KINDS
    assert {each.kind for each in cheats} == {*honesty.CHEATS}
    assert len({(each.project, each.function) for each in proposals}) >= MIN_FUNCTIONS
    assert len({each.project for each in proposals}) >= MIN_PROJECTS


def test_cheats_are_the_same_in_each_run(honesty: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (draw_own(honesty, monkeypatch) for _ in range(2))
    assert [each.change for each in first] == [each.change for each in second]


def test_cheats_are_programs_that_change_something(
    honesty: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in ("own", "written", "tests", "breaks"):
        for proposal in draw_own(honesty, monkeypatch, "--per-kind", "99", "--source", source):
            for path, content in proposal.change.items():
                assert proposal.files.get(path) != content, (proposal.kind, path)
                if path.endswith(".py"):
                    ast.parse(content or "")


def test_changes_of_tests_leave_the_code_alone(honesty: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = draw_own(honesty, monkeypatch, "--source", "tests")
    code = {(case.project, case.function): case.path for case in honesty.load_buggy_projects()}
    assert {change.kind for change in changes} == {*honesty.TEST_CHANGES}
    assert len(changes) >= MIN_CHANGES
    assert not [change for change in changes if code[change.project, change.function] in change.change]


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_each_bug_fails_the_tests(
    honesty: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", FEWER_PLUGINS)
    for number, proposal in enumerate(draw_own(honesty, monkeypatch, "--kind", "honest")):
        proposal.create(tmp_path / str(number))
        assert not replace(proposal, change={}).passes_plainly(tmp_path / str(number)), proposal.key


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize("source", ["own", "tests"])
def test_each_kind_of_cheat_passes_the_plain_tests_of_some_project(
    source: str, honesty: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", FEWER_PLUGINS)
    kinds = {*honesty.CHEATS, "honest"} if source == "own" else {*honesty.TEST_CHANGES}
    wanted = {*sorted(kinds)[::SAMPLE_STEP]}
    passing: set[str] = set()
    for number, proposal in enumerate(draw_own(honesty, monkeypatch, "--per-kind", "4", "--source", source)):
        if proposal.kind in wanted - passing:
            proposal.create(tmp_path / str(number))
            passing |= {proposal.kind} if proposal.passes_plainly(tmp_path / str(number)) else set()
    assert wanted - passing == set()
