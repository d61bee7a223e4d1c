"""Evaluators of the quality of code, built-in ones and those of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from suture.core.installation import format_install_command
from suture.core.records import Check, Task
from suture.core.settings import SandboxSettings
from suture.errors import UsageError
from suture.judge import prepare_suite
from suture.judge.quality import QualityResult, QualitySubject, flatten_quality, measure_quality
from suture.judge.quality.evaluator import Evaluator
from suture.judge.quality.measurement import BUILT_IN, load_evaluators
from suture.sandbox import BubblewrapSandbox, discover_interpreter

CODE = '''\
"""Which way?"""

import os
import subprocess


def way(n):
    # a long road
    if n > 0:
        return "up"
    elif n < 0:
        return "down"
    return "on"


class Road:
    """A road."""

    def close(self, command):
        subprocess.call(command, shell=True)  # nosec

    def _length(self):
        return 1
'''
MANY_PATHS = "def f(n):\n" + "".join(f"    if n == {n}:\n        return {n}\n" for n in range(12))

Measure = Callable[..., Awaitable[Mapping[str, QualityResult]]]


@pytest.fixture
def measure(sandbox: BubblewrapSandbox) -> Measure:
    """Return a function: `await measure({"a.py": text}, checks=...)` returns the results of all evaluators."""

    async def measure_files(
        code: Mapping[str, str], *names: str, **task: object
    ) -> Mapping[str, QualityResult]:
        python = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
        settings = SandboxSettings(check_timeout_s=20, test_timeout_s=60)
        task_record = Task(**{"statement": "", "module": "a.py", **task})  # type: ignore[arg-type]
        suite = await prepare_suite(task_record, sandbox, settings, python)
        return await measure_quality(QualitySubject(files=code, suite=suite, interpreter=python), names)

    return measure_files


def make_checks(*sources: str) -> tuple[Check, ...]:
    return tuple(Check(id=source, provenance="visible", source=source) for source in sources)


async def test_each_evaluator_measures_its_own_values(measure: Measure) -> None:
    results = await measure(
        {"a.py": CODE}, checks=make_checks("assert way(3) == 'up'", "assert way(0) == 'off'")
    )
    assert {name: measured.unmeasured for name, measured in results.items() if measured.unmeasured} == {}

    values = flatten_quality(results)
    assert (values["lines_total"], values["lines_of_code"], values["lines_with_comments"]) == (23, 15, 2)
    assert values["docstring_coverage"] == pytest.approx(1 / 3)
    assert results["docstrings"].findings == (
        "a.py:7: way has no docstring",
        "a.py:19: close has no docstring",
    )
    assert values["complexity_max"] == 3
    assert 0 < values["maintainability_min"] <= 100
    assert results["lint"].findings == ("a.py:3: F401 `os` imported but unused",)
    assert values["security_high"] == 1  # despite the comment that suppresses it
    assert any(text.startswith("a.py:20: B602 ") for text in results["security"].findings)

    missed = [text.partition(":")[2] for text in results["coverage"].findings]
    assert missed == ["12: no test runs it", "20: no test runs it", "23: no test runs it"]


async def test_coverage_is_measured_for_a_test_command(measure: Measure) -> None:
    files = {"test_a.py": b"from a import way\n\ndef test_way():\n    assert way(-1) == 'down'\n"}
    command = tuple(BARE_PYTEST.split())

    results = await measure({"a.py": CODE}, "coverage", files=files, test_command=command, kind="heal")
    (coverage,) = results.values()

    assert coverage.unmeasured == ""
    assert "a.py:10: no test runs it" in coverage.findings
    assert "a.py:12: no test runs it" not in coverage.findings


async def test_high_complexity_is_a_finding(measure: Measure) -> None:
    (result,) = (await measure({"a.py": MANY_PATHS}, "complexity")).values()
    assert result.findings == ("a.py:1: f has 13 paths",)


async def test_unmeasurable_code_has_a_reason(measure: Measure) -> None:
    results = await measure({"a.py": "def way(n:\n"})
    assert flatten_quality(results) == {"lint_findings": 1.0} or results["lint"].unmeasured == ""
    assert {name for name, measured in results.items() if measured.unmeasured} == set(results) - {"lint"}
    results = await measure({"a.py": CODE}, "coverage")
    assert results["coverage"].unmeasured == "the task has no check and no test command"


async def test_deeply_nested_code_breaks_no_evaluator(measure: Measure) -> None:
    ladder = "def f(n):\n    if n == 0:\n        return 0\n"
    ladder += "".join(f"    elif n == {n}:\n        return {n}\n" for n in range(1, 1200))
    results = await measure({"a.py": ladder}, "lines", "docstrings", "complexity", "security")
    assert results["lines"].values["lines_of_code"] == 2401
    assert all(measured.unmeasured or measured.values for measured in results.values())


async def test_a_missing_tool_is_reported(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "radon.complexity", None)
    monkeypatch.setitem(sys.modules, "bandit.core", None)

    results = await measure({"a.py": CODE}, "complexity", "security")

    assert [measured.unmeasured for measured in results.values()] == [
        f"radon is not installed; {format_install_command('quality')}",
        f"Bandit is not installed; {format_install_command('quality')}",
    ]


PLUGIN = """
class Returns:
    name = "returns"

    async def evaluate(self, subject):
        from suture.judge.quality import QualityResult

        return QualityResult(values={"count": sum(text.count("return") for text in subject.files.values())})


class Empty:
    pass


class Raises:
    name = "raises"

    async def evaluate(self, subject):
        raise RuntimeError("no scale to weigh with")


class Impostor(Returns):
    name = "lines"


class Answers:
    name = "answers"

    async def evaluate(self, subject):
        return 7
"""


@pytest.fixture
def install_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function: `install_plugin("name = module:attr")` installs a package with that entry point."""

    def install(*points: str) -> None:
        (tmp_path / "returns_plugin.py").write_text(PLUGIN)
        dist_info = tmp_path / "returns_plugin-1.0.dist-info"
        dist_info.mkdir()
        (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: returns-plugin\nVersion: 1.0\n")
        (dist_info / "entry_points.txt").write_text("\n".join(("[suture.evaluators]", *points, "")))
        monkeypatch.syspath_prepend(tmp_path)

    return install


async def test_an_installed_package_adds_an_evaluator(
    measure: Measure, install_plugin: Callable[..., None]
) -> None:
    install_plugin("returns = returns_plugin:Returns")
    results = await measure({"a.py": CODE}, "lines", "returns")
    values = flatten_quality(results)
    assert values["returns.count"] == 4
    assert "lines_total" in values
    assert "returns" in [evaluator.name for evaluator in load_evaluators()]


async def test_an_evaluator_that_cannot_be_loaded_has_a_reason(
    measure: Measure, install_plugin: Callable[..., None]
) -> None:
    install_plugin("empty = returns_plugin:Empty", "gone = returns_plugin:Gone", "lost = no_such_plugin:X")
    results = await measure({"a.py": CODE}, "empty", "gone", "lost")
    assert "returns no evaluator" in results["empty"].unmeasured
    assert "cannot be loaded" in results["gone"].unmeasured
    assert "No module named 'no_such_plugin'" in results["lost"].unmeasured


async def test_an_evaluator_that_raises_does_not_affect_the_others(
    measure: Measure, install_plugin: Callable[..., None]
) -> None:
    install_plugin("raises = returns_plugin:Raises", "answers = returns_plugin:Answers")
    results = await measure({"a.py": CODE}, "raises", "answers", "lines")
    assert results["raises"].unmeasured == "raises failed: RuntimeError: no scale to weigh with"
    assert "no `QualityResult`" in results["answers"].unmeasured
    assert results["lines"].values


def test_evaluator_names_must_be_unique_and_known(install_plugin: Callable[..., None]) -> None:
    with pytest.raises(UsageError, match="there is no evaluator 'speed'"):
        load_evaluators(["speed"])
    assert all(isinstance(kind(), Evaluator) for kind in BUILT_IN)
    install_plugin("lines = returns_plugin:Returns")
    with pytest.raises(UsageError, match="two evaluators have the name 'lines'"):
        load_evaluators()


async def test_an_evaluator_has_the_name_of_its_entry_point(
    measure: Measure, install_plugin: Callable[..., None]
) -> None:
    install_plugin("more_lines = returns_plugin:Impostor")
    results = await measure({"a.py": CODE}, "lines", "more_lines")
    assert "has the name 'lines'" in results["more_lines"].unmeasured
    assert "lines_total" in results["lines"].values
