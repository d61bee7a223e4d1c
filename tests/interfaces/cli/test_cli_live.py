"""The live view shows a run at any width and restores the terminal afterwards."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest
from rich.console import Console
from rich.segment import Segment

from interfaces.cli.conftest import Script, Suture
from interfaces.cli.real_terminal import Terminal
from suture.core.ledger import Event
from suture.core.settings import BudgetSettings
from suture.interfaces.cli.terminal import run_progress as progress
from suture.interfaces.cli.terminal.live_view import LiveView
from suture.search import SearchProgress

EVENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("run.started", {"kind": "write"}),
    ("moves.decided", {"round": 0, "best": None, "moves": [{"kind": "sample"}]}),
    (
        "candidate.checked",
        {"candidate": "a" * 64, "label": "sample 1, greedy", "passed": 1, "failed": 2, "verdict": "v"},
    ),
    (
        "candidate.checked",
        {"candidate": "b" * 64, "label": "sample\x1b[2J 2", "passed": 3, "failed": 0, "verdict": "v"},
    ),
    ("lessons.drawn", {"lessons": ["an empty list is a case too"]}),
    ("moves.decided", {"round": 1, "best": "b" * 64, "moves": [{"kind": "repair"}]}),
    ("candidate.checked", {"candidate": 7}),
)


def make_view(events: tuple[tuple[str, dict[str, Any]], ...] = EVENTS) -> LiveView:
    """Return a live view that has received these events."""
    view = LiveView({"attempts": 12, "tokens": 60_000, "money": None, "seconds": 900})
    for seq, (kind, data) in enumerate(events):
        view.update(Event(seq=seq, time_s=1_000.0 + seq, kind=kind, data=data))
    return view


def draw(view: LiveView, width: int, height: int = 24) -> list[str]:
    """Return the lines that a terminal of this size shows."""
    screen = io.StringIO()
    console = Console(file=screen, width=width, height=height, force_terminal=True, color_system=None)
    console.print(view, soft_wrap=False)
    return screen.getvalue().rstrip("\n").split("\n")


def test_the_view_shows_phase_scores_spend_and_lessons() -> None:
    text = "\n".join(draw(make_view(), 100))
    assert "checking · round 2" in text
    assert "1/3  aaaaaaaa  candidate 1" in text
    assert "3/3  bbbbbbbb  sample\\x1b[2J 2 (best)" in text
    assert "0 of 12 attempts, 0 of 60,000 tokens" in text
    assert "lesson: an empty list is a case too" in text


@pytest.mark.parametrize(("model", "are_shown"), [("none", False), ("scripted:a.json", True)])
def test_the_limits_of_a_model_are_shown_once_the_run_uses_one(model: str, *, are_shown: bool) -> None:
    view = make_view(())
    assert " attempts" not in "\n".join(draw(view, 100))
    start = {"kind": "heal", "model": model}
    view.update(Event(seq=0, time_s=1_000.0, kind="run.started", data=start))
    assert ("0 of 12 attempts" in "\n".join(draw(view, 100))) is are_shown


def test_a_search_is_not_announced_as_a_question_to_the_model() -> None:
    decided = ("moves.decided", {"round": 0, "moves": [{"kind": "mutate"}]})
    assert make_view((EVENTS[0], decided)).status_text().startswith("searching for a repair without a model")


def test_a_check_of_the_final_form_of_a_result_is_a_part_of_its_certification() -> None:
    stop = {"round": 1, "best": "b" * 64, "moves": [{"kind": "stop", "outcome": "healed"}]}
    final = {"candidate": "c" * 64, "label": "sample 2", "passed": 3, "failed": 0, "verdict": "v"}
    view = make_view((*EVENTS, ("moves.decided", stop), ("candidate.checked", final)))
    assert view.status_text().startswith("certifying the result")


def test_a_change_of_the_clock_of_the_machine_does_not_count_as_spent_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, now_s = LiveView({"seconds": 900}), time.time()
    view.update(Event(seq=0, time_s=now_s, kind="run.started", data={"kind": "write"}))
    monkeypatch.setattr(time, "time", lambda: now_s + 3600)
    assert " 0 of 900 s" in "\n".join(draw(view, 100))


def test_the_first_reply_is_shown_with_the_tokens_of_all_replies() -> None:
    view = make_view()
    for number, words in ((4, "def "), (5, "class"), (4, "def f(x):"), (5, "class A:")):
        view.update_reply(number, words)
    text = "\n".join(draw(view, 100))
    assert "4 tokens" in text
    assert "| def f(x):" in text
    assert "class A" not in text

    view.update_reply(4, None)
    assert "| class A:" in "\n".join(draw(view, 100))

    view.update_reply(5, None)
    assert " tokens\n" not in "\n".join(draw(view, 100))


def test_a_reservation_is_not_shown_as_spent() -> None:
    reserved = {"reservation": 1, "attempts": 1, "tokens": 5_000, "completion_tokens": 4_000, "money": 0.0}
    text = "\n".join(draw(make_view((EVENTS[0], ("budget.reserved", reserved))), 100))
    assert "the model reads the task" in text
    assert "spent 0 of 12 attempts, 0 of 60,000 tokens" in text


def test_the_view_shows_how_fast_a_reply_is_written_and_how_far_a_search_is() -> None:
    view = make_view(
        (
            EVENTS[0],
            ("search.started", {"candidates": 20_000, "seconds": 60.0, "files": [], "failing": 5, "seed": 0}),
        )
    )
    view.update_search(SearchProgress(tried=214, best=4, targets=5))
    progress = "tried 214 of at most 20,000 edits · best: passes 4 of 5 failing tests"
    assert progress in draw(view, 80)[1]
    assert f" · {progress} · 0 s" in view.status_text()
    view.update_search(SearchProgress(tried=215, best=5, targets=5, breaks_another=True))
    assert "passes 5 of 5 failing tests but breaks another" in draw(view, 120)[1]

    view.update_reply(1, "def ")
    view.update_reply(1, "def f")
    assert re.search(r"the model writes · 2 tokens, \d+ a second · 0 s", draw(view, 100)[0])


def test_without_a_terminal_a_line_says_every_few_seconds_what_the_run_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SILENCE_S", 0.05)
    with progress.RunProgress(BudgetSettings()) as plain:
        plain(Event(seq=0, time_s=1_000.0, kind="run.started", data={"kind": "write"}))
        plain.show_reply(1, "def ")
        wait_s = time.monotonic() + 30
        output = ""
        while "the model writes" not in output and time.monotonic() < wait_s:
            time.sleep(0.02)
            output += capsys.readouterr().err
    assert "... the model writes" in output


@pytest.mark.parametrize("width", [1, 2, 7, 20, 40, 79, 200])
def test_no_line_ever_wraps(width: int) -> None:
    view = make_view()
    lines = draw(view, width)
    assert len(lines) == len(view.widths) == 5
    assert all(cells < max(width, 2) for cells in view.widths)


def test_the_view_fits_a_terminal_of_four_rows() -> None:
    assert len(draw(make_view(), 80, height=4)) == 2


def test_a_line_printed_during_the_view_leaves_no_stale_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The view grows with each candidate, so clearing it must use its height at that moment."""

    class SlowConsole(Console):
        def render(self, *arguments: Any) -> Iterator[Segment]:
            time.sleep(0.001)
            yield from super().render(*arguments)

    output = io.StringIO()
    screen = SlowConsole(file=output, width=100, height=50, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress, "make_console", lambda *, stderr: screen)
    monkeypatch.setattr(progress, "REFRESHES_PER_SECOND", 1000)
    with progress.RunProgress(BudgetSettings(), "verbose") as progress_view:
        for seq in range(20):
            for kind, data in (*EVENTS[:3], EVENTS[4]):
                progress_view(
                    Event(seq=seq, time_s=1_000.0, kind=kind, data=data | {"candidate": f"{seq:064}"})
                )
    emulator = pyte.HistoryScreen(100, 50, history=5000)
    pyte.Stream(emulator).feed(output.getvalue().replace("\n", "\r\n"))

    rows = ["".join(line[x].data for x in range(100)) for line in emulator.history.top] + emulator.display

    assert sum("1 of 3 pass" in row for row in rows) == 20
    assert not [row for row in rows if "· round" in row]


@pytest.mark.heavy
@pytest.mark.usefixtures("sandbox")
def test_ctrl_c_leaves_the_terminal_as_it_was(
    environ: dict[str, str], tmp_path: Path, script: Script
) -> None:
    (tmp_path / "test_slow.py").write_text(
        "import time\nfrom solution import f\n\n\ndef test_f():\n    time.sleep(60)\n"
    )
    model = script("```python\ndef f():\n    return 1\n```")
    screen = Terminal(["run", "Write f().", "--test", "test_slow.py", "--model", model], environ, tmp_path)
    screen.wait_for("checking")
    screen.wait_for("of 900 s")

    screen.type("\x03")

    assert screen.end() == 130, screen.screen
    assert "Traceback" not in screen.screen
    assert screen.screen.count("\x1b[?25l") == screen.screen.count("\x1b[?25h") == 1


def test_without_a_terminal_progress_is_plain_lines(sandbox: None, suture: Suture, script: Script) -> None:
    model = script("```python\ndef double(n):\n    return 2 * n\n```")
    done = suture("run", "Write double(n).\n\n>>> double(4)\n8\n", "--model", model)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr
    assert "round 1" not in done.stderr
    assert "candidate 1, " in done.stderr
