"""The short story of a run: few lines, the outcome once, and what to type next."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bare_pytest import BARE_PYTEST
from interfaces.cli.real_terminal import Terminal

Suture = Callable[..., subprocess.CompletedProcess[str]]
MAX_LINES = 8
SEARCH = ("--no-model", "--set", "repair.seconds=240", "--set", "repair.enabled=true")

pytestmark = [pytest.mark.usefixtures("sandbox"), pytest.mark.timeout(300)]


def without_numbers(text: str) -> str:
    """The lines without what differs from run to run: ids, seconds, folders."""
    text = re.sub(r"\d{8}-\d{9}-[0-9a-f]{6}", "RUN", text)
    text = re.sub(r"\d+\.\d s", "N s", text)
    text = re.sub(r"for \d+ s", "for N s", text)
    return re.sub(r"Used [\d,]+ s", "Used N s", text)


@pytest.mark.heavy
def test_a_fix_of_one_line_is_told_in_eight(suture: Suture, broken: Path) -> None:
    done = suture("heal", str(broken), "--test", BARE_PYTEST, *SEARCH)
    assert done.returncode == 0, done.stderr
    lines = without_numbers(done.stderr).splitlines()
    assert len(lines) == MAX_LINES
    assert lines[1:3] == [
        f"Your code: 3 of 5 fail ({BARE_PYTEST}).",
        "Trying small edits first, without a model: at most 20,000, for N s.",
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
def test_quiet_is_the_result_alone(suture: Suture, broken: Path) -> None:
    done = suture("heal", str(broken), "--test", BARE_PYTEST, "--quiet", *SEARCH)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("diff --git a/cart.py")


@pytest.mark.heavy
def test_verbose_says_what_each_step_is_worth(suture: Suture, broken: Path) -> None:
    done = suture("heal", str(broken), "--test", BARE_PYTEST, "--verbose", *SEARCH)
    assert done.returncode == 0, done.stderr
    for words in (
        "heal with no model",
        "3 failing tests to fix",
        "next: small edits",
        "judged by the test runner's report, signed",
        "Certificate: /",
    ):
        assert words in done.stderr


def test_both_at_once_are_an_error(suture: Suture) -> None:
    done = suture("heal", ".", "--quiet", "--verbose")
    assert (done.returncode, done.stdout) == (2, "")
    assert "exclude each other" in done.stderr


def test_a_run_that_heals_nothing_says_why_and_what_to_try(suture: Suture, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "test_a.py").write_text("from a import f\n\n\ndef test_f():\n    assert f(2) == 'zebra'\n")
    done = suture("heal", str(tmp_path), "--test", BARE_PYTEST, *SEARCH)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) <= MAX_LINES + 4
    assert "makes all tests pass." in done.stderr
    assert "Not healed: the search found no repair" in done.stderr
    assert "1 of 1 still fail:\n  test_a.py::test_f\n" in done.stderr
    assert "Use a model too: leave out --no-model" in done.stderr


@pytest.mark.heavy
def test_tests_that_no_edit_can_mend_are_left_out_as_told(suture: Suture, broken: Path) -> None:
    (broken / "test_till.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_till(till_of_plugin, n): ...\n"
    )
    run = ("heal", str(broken), "--set", "repair.enabled=true", "--set", "repair.seconds=60", "--no-model")
    done = suture(*run, "--set", "repair.candidates=1")
    assert done.returncode == 1, done.stderr
    told = "test_till.py::test_till[1] and 1 more (environment: the pytest plugin that provides the fixture"
    assert f"Not the code's fault: {told}" in done.stderr
    assert "makes all tests pass" not in done.stderr  # no search that could find nothing
    advice = next(line for line in done.stderr.splitlines() if "Leave them out: --test " in line)
    command = shlex.split(advice.partition("Leave them out: ")[2])
    assert suture(*run, *command).returncode == 0


@pytest.mark.heavy
def test_what_is_told_at_the_end_works_where_pytest_counts_from_another_folder(
    suture: Suture, broken: Path, tmp_path: Path
) -> None:
    project = tmp_path / "whole of it"
    project.mkdir()
    broken.rename(project / "inner")
    (project / "inner" / "pytest.ini").write_text("[pytest]\n")
    (project / "inner" / "test_till.py").write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('n', range(30))\ndef test_till(till_of_plugin, n): ...\n"
    )
    settings = ("--set", "repair.enabled=true", "--set", "repair.seconds=60", "--no-model")
    done = suture(
        *("heal", str(project), "--test", f"{BARE_PYTEST} inner"),
        *(*settings, "--set", "repair.candidates=1"),
    )
    assert done.returncode == 1, done.stderr
    end = next(line for line in done.stderr.splitlines() if "Leave them out: suture " in line)
    assert end.startswith(
        "30 tests cannot pass by any change of the code, so the run cannot count as healed."
    )
    assert "Ask a model too" not in done.stderr
    words = shlex.split(end.partition("Leave them out: suture ")[2])
    assert words[-1].endswith("--deselect test_till.py::test_till")
    assert suture(*words, *settings).returncode == 0


def test_a_command_without_a_report_says_what_its_pass_is_worth(
    suture: Suture, script: Callable[..., str], broken: Path, fixing_reply: str
) -> None:
    check = "import cart; assert cart.cart_total([('a', 1000, 3)]) == 3490"
    model = ("--model", script(fixing_reply), "--set", "certification.seconds=0")
    done = suture("heal", str(broken), "--test", f'python -c "{check}"', *model)
    assert done.returncode == 0, done.stderr
    assert "Healed: the test command passes, judged by its exit status alone." in done.stderr


def test_an_example_that_cannot_be_parsed_is_named(suture: Suture, script: Callable[..., str]) -> None:
    task = "Write a function double(n). double(2) == 4. double(3) == six"
    done = suture("run", task, "--model", script("```python\ndef double(n):\n    return 2 * n\n```"))
    assert done.returncode == 0, done.stderr
    assert "could not be parsed and is not checked: double(3) == six" in done.stderr
    assert "Done: the one check passes." in done.stderr


@pytest.mark.heavy
@pytest.mark.parametrize("columns", [60, 100])
def test_on_a_terminal_nothing_is_said_twice_and_no_word_is_cut(
    environ: dict[str, str], broken: Path, columns: int
) -> None:
    arguments = ["heal", ".", "--test", BARE_PYTEST, *SEARCH]
    screen = Terminal(arguments, environ, broken, columns=columns)
    assert screen.end() == 0, screen.screen
    shown = screen.screen[screen.screen.rindex("\x1b[?25h") :]
    assert shown.count("Healed: all 5 tests pass.") == 1
    assert "Apply it: suture apply " in shown
    assert "spent" not in shown
