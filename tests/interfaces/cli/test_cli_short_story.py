"""The progress lines of a run are few, state the outcome once, and say what to type next."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.conftest import Script, Suture
from interfaces.cli.real_terminal import Terminal

MAX_LINES = 8
SEARCH = ("--no-model", "--set", "repair.seconds=240", "--set", "repair.enabled=true")

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]


def replace_numbers(text: str) -> str:
    """Replace run ids and seconds, which differ between runs; drop the lines of a machine that is slow to answer."""
    text = re.sub(r"^\.\.\. .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\d{8}-\d{9}-[0-9a-f]{6}", "RUN", text)
    text = re.sub(r"\d+\.\d s", "N s", text)
    text = re.sub(r"edits and \d+ s", "edits and N s", text)
    return re.sub(r"Used [\d,]+ s", "Used N s", text)


@pytest.mark.heavy
def test_a_one_line_fix_is_reported_in_eight_lines(suture: Suture, broken_project: Path) -> None:
    result = suture("heal", str(broken_project), "--test", BARE_PYTEST, *SEARCH)
    assert result.returncode == 0, result.stderr

    lines = replace_numbers(result.stderr).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[1:3] == [
        f"Your code: 3 of 5 fail ({BARE_PYTEST}).",
        "Trying small edits, without a model: at most 20,000 edits and N s.",
    ]
    assert re.fullmatch(
        r"Found among [\d,]+ edits in N s: cart\.py, line \d+: price becomes price \* quantity", lines[3]
    )
    assert lines[4] == "Healed: all 5 tests pass."
    assert re.fullmatch(
        r"Your tests run every changed line and catch \d+ of \d+ deliberate mistakes there\. "
        r"Confidence 0\.\d\d\.",
        lines[5],
    )
    assert lines[6:] == ["Apply it: suture apply RUN", "Used N s. More: suture show RUN"]


@pytest.mark.heavy
def test_quiet_prints_only_the_result(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str
) -> None:
    model = ("--model", script(fixing_reply), "--set", "repair.enabled=false")
    result = suture("heal", str(broken_project), "--test", BARE_PYTEST, "--quiet", *model)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("diff --git a/cart.py")


@pytest.mark.heavy
def test_verbose_explains_each_step(suture: Suture, broken_project: Path) -> None:
    result = suture("heal", str(broken_project), "--test", BARE_PYTEST, "--verbose", *SEARCH)

    assert result.returncode == 0, result.stderr
    for text in (
        "heal with no model",
        "3 failing tests to fix",
        "next: small edits",
        "judged by the test runner's signed report",
        "Certificate: /",
    ):
        assert text in result.stderr


def test_a_quiet_failure_says_in_one_line_how_it_ended(suture: Suture, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "test_a.py").write_text("from a import f\n\n\ndef test_f():\n    assert f(2) == 'zebra'\n")

    result = suture("heal", str(tmp_path), "--test", BARE_PYTEST, "--quiet", *SEARCH)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Not healed: the search found no repair")
    assert result.stderr.count("\n") == 1


def test_quiet_and_verbose_exclude_each_other(suture: Suture) -> None:
    result = suture("heal", ".", "--quiet", "--verbose")
    assert (result.returncode, result.stdout) == (2, "")
    assert "exclude each other" in result.stderr


def test_a_failed_heal_says_why_and_what_to_try(suture: Suture, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "test_a.py").write_text("from a import f\n\n\ndef test_f():\n    assert f(2) == 'zebra'\n")

    result = suture("heal", str(tmp_path), "--test", BARE_PYTEST, *SEARCH)

    assert result.returncode == 1, result.stderr
    assert (
        len(replace_numbers(result.stderr).splitlines()) <= MAX_LINES + 5
    )  # the second command shows the suspicious lines
    assert "none makes all tests pass." in result.stderr
    assert "Not healed: the search found no repair" in result.stderr
    assert "The only test still fails:\n  test_a.py::test_f\n" in result.stderr
    assert "Let a model continue: suture fork " in result.stderr


@pytest.mark.heavy
def test_the_advice_to_leave_out_unfixable_tests_works(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str
) -> None:
    (broken_project / "test_till.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_till(till_of_plugin, n): ...\n"
    )
    command = ("heal", str(broken_project), "--set", "repair.enabled=true", "--set", "repair.candidates=1")
    result = suture(*command, "--no-model")
    assert result.returncode == 1, result.stderr

    cause = "test_till.py::test_till[1] and 1 more (environment: the pytest plugin that provides the fixture"
    assert f"Not the code's fault: {cause}" in result.stderr
    assert "makes all tests pass" not in result.stderr  # no search was started that could only fail

    advice = next(line for line in result.stderr.splitlines() if "Leave them out: --test " in line)
    options = shlex.split(advice.partition("Leave them out: ")[2])
    assert suture(*command, *options, "--model", script(fixing_reply)).returncode == 0


@pytest.mark.heavy
def test_the_advice_to_leave_out_tests_works_when_pytest_has_another_root(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str, tmp_path: Path
) -> None:
    project = tmp_path / "whole of it"
    project.mkdir()
    broken_project.rename(project / "inner")
    (project / "inner" / "pytest.ini").write_text("[pytest]\n")
    (project / "inner" / "test_till.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('n', range(30))\ndef test_till(till_of_plugin, n): ...\n"
    )
    settings = ("--set", "repair.enabled=true", "--set", "repair.candidates=1")
    result = suture("heal", str(project), "--test", f"{BARE_PYTEST} inner", *settings, "--no-model")
    assert result.returncode == 1, result.stderr

    end = next(line for line in result.stderr.splitlines() if "Leave them out: suture " in line)
    assert end.startswith(
        "30 tests cannot pass by any change of the code, so the run cannot count as healed."
    )
    assert "Let a model continue" not in result.stderr

    command = shlex.split(end.partition("Leave them out: suture ")[2])
    assert command[-1].endswith("--deselect test_till.py::test_till")
    assert suture(*command, *settings, "--model", script(fixing_reply)).returncode == 0


def test_a_test_command_without_a_report_is_judged_by_its_exit_status(
    suture: Suture, script: Script, broken_project: Path, fixing_reply: str
) -> None:
    check = "import cart; assert cart.cart_total([('a', 1000, 3)]) == 3490"
    model = ("--model", script(fixing_reply), "--set", "certification.seconds=0")
    result = suture("heal", str(broken_project), "--test", f'python -c "{check}"', *model)
    assert result.returncode == 0, result.stderr
    assert "Healed: the test command passes, judged by its exit status alone." in result.stderr


def test_an_example_that_cannot_be_parsed_is_named(suture: Suture, script: Script) -> None:
    task = "Write a function double(n). double(2) == 4. double(3) == six"
    result = suture("run", task, "--model", script("```python\ndef double(n):\n    return 2 * n\n```"))
    assert result.returncode == 0, result.stderr
    assert "could not be read as a check: double(3) == six" in result.stderr
    assert "Done: the only check passes." in result.stderr


@pytest.mark.heavy
def test_a_narrow_terminal_shows_the_outcome_once_and_in_full(
    environ: dict[str, str], broken_project: Path
) -> None:
    arguments = ["heal", ".", "--test", BARE_PYTEST, *SEARCH]
    screen = Terminal(arguments, environ, broken_project, columns=60)
    assert screen.end() == 0, screen.screen

    last_screen = screen.screen[screen.screen.rindex("\x1b[?25h") :]
    assert last_screen.count("Healed: all 5 tests pass.") == 1
    assert "Apply it: suture apply " in last_screen
    assert "spent" not in last_screen
