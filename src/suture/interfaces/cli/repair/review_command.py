"""`suture review`, and the question on a terminal: diagnosis, facts and diff, and what to say to it."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from suture.errors import UsageError
from suture.interfaces.cli.terminal.command_options import Assignments, Json, RunName, load_command_settings
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    DIFF_STYLES,
    make_console,
    print_json,
    print_note,
    print_prompt,
    print_text,
    stdin_is_terminal,
)
from suture.interfaces.narrative.plain_text import escape_unprintable, join_lines, render_label
from suture.interfaces.narrative.review_text import answer_instructions

if TYPE_CHECKING:
    from suture.api import Choice, Difference, Review, ReviewAnswer, Reviewer
    from suture.interfaces.cli.terminal.run_progress import RunProgress

FACTS_SHOWN = 5
CHOICES = "y: yes, n or Enter: no, e: edit it, h HINT: no, try this, l: later, x: stop the run"

OTHER_CHOICES = {
    "test": "y yes, it decides from now on; n no (or Enter), h HINT another one, l later, x stop the run",
    "safety": "y yes, it may in this run; n no (or Enter), h HINT no, try this, l later, x stop the run",
}

NUMBERED: dict[str, Choice] = {"1": "first", "2": "second", "n": "neither", "neither": "neither"}


@handle_errors
def review(run: RunName = "last", assignments: Assignments = None, as_json: Json = False) -> None:
    """Show what a run that waits for a person asks: diagnosis, facts and diff.

    Exits 1 where it waits for nothing. Answer with `suture resume`.
    """
    from suture.api import pending_review

    asked = pending_review(run, settings=load_command_settings(Path(), assignments, looks=True).settings)
    if asked is None:
        raise UsageError(f"run {run!r} waits for no answer", remedy="see how it stands: suture history")
    if as_json:
        from suture.interfaces.narrative.review_text import review_as_json

        print_json(review_as_json(asked))
        return
    print_text(join_lines(_lines(asked)) + f"\n{asked.diff}")
    for line in answer_instructions(asked.run_id, asked.stage):
        print_note(line)


def terminal_reviewer(progress: RunProgress) -> Reviewer | None:
    """Asks on the terminal; `None` where there is none, so that the run is parked."""
    if not stdin_is_terminal():
        return None
    reader = _LineReader(sys.stdin.fileno())

    async def ask(asked: Review) -> ReviewAnswer | None:
        with progress.paused():
            if asked.difference is not None:
                return await _distinguished(asked.difference, reader)
            for line in _about(asked):
                print_note(line)
            _print_diff(asked.diff)
            while True:
                print_note(OTHER_CHOICES.get(asked.stage, CHOICES))
                reader.forget()  # before the question: what is typed behind it is meant
                print_prompt(f"{asked.wish} [y/N] ")
                typed = await reader.read()
                if typed is None or typed.strip().lower() == "l":
                    return None
                said = _understood(typed.strip(), asked)
                if said is not None:
                    return said

    return ask


async def _distinguished(difference: Difference, reader: _LineReader) -> ReviewAnswer:
    """Which repair is right; the run goes on also where nobody knows."""
    from suture.api import ReviewAnswer

    return ReviewAnswer(choice=await ask_which_is_right(difference, reader.read) or "unsure")


def _understood(line: str, asked: Review) -> ReviewAnswer | None:
    """What a person typed; `None` where they have to be asked again."""
    from suture.api import ReviewAnswer

    word, _, rest = line.partition(" ")
    word = word.lower()
    if word in ("h", "hint", "redirect") and rest.strip():
        return ReviewAnswer(choice="redirect", hint=rest.strip())
    if word in ("e", "edit") and asked.stage not in ("test", "safety"):
        files = _edited(asked, rest.strip())
        return ReviewAnswer(choice="edit", files=files) if files else None
    if rest:
        return None
    if word in ("y", "yes", "a", "approve"):
        return ReviewAnswer(choice="approve")
    if word in ("n", "no", "", "r", "reject"):
        return ReviewAnswer(choice="reject")
    return ReviewAnswer(choice="abort") if word in ("x", "abort") else None


def _edited(asked: Review, wanted: str) -> dict[str, str]:
    editable = asked.editable
    if not wanted and len(editable) > 1 and not (asked.candidate and len(asked.candidate.files) == 1):
        print_note(f"which file? e PATH, one of: {', '.join(list(editable)[:20])}")
        return {}
    path = wanted or next(iter(editable))
    if path not in editable:
        print_note(f"{path!r} is none of the files that may change")
        return {}
    changed = edit_text(editable[path], path)
    if changed is None:
        print_note("nothing was changed")
    return {} if changed is None else {path: changed}


def _lines(asked: Review) -> Iterator[str]:
    """The question in words, without the diff."""
    yield f"run {asked.run_id} waits: {asked.question}"
    if asked.difference is None:
        yield from _about(asked)


def _about(asked: Review) -> Iterator[str]:
    """What there is to know for an answer."""
    from suture.interfaces.narrative.event_text import counterexample_lines, render_next_move

    for move in asked.moves:
        yield f"next: {render_next_move(move.kind, _how(move.strategy, move.kind), move.reason)}"
    if asked.diagnosis:
        said = asked.diagnosis
        yield f"diagnosis: {said.category}, confidence {said.confidence:.2f}: {said.root_cause}"
    if asked.candidate is None:
        yield "nothing is written yet"
        return
    verdict = asked.verdict
    total = len(verdict.passed) + len(verdict.failed) if verdict else 0
    passed = (
        f"{len(verdict.passed)} of {total} checks pass" if verdict and total else "nothing to check it by"
    )
    yield f"candidate {asked.candidate.hash[:8]} ({render_label(asked.candidate.label)}): {passed}"
    for fact in asked.facts[:FACTS_SHOWN]:
        yield from (f"  {line}" for line in counterexample_lines(fact))
    if verdict and verdict.failed and not asked.facts:
        yield from (f"  | {line}" for line in verdict.output.strip().splitlines()[-15:])


def _how(strategy: str, kind: str) -> str:
    return f" ({strategy})" if kind == "repair" else ""


def _print_diff(diff: str) -> None:
    screen = make_console(stderr=True)
    for line in escape_unprintable(diff).splitlines():
        style = next((style for mark, style in DIFF_STYLES if line.startswith(mark)), None)
        screen.print(line, style=style)


class _LineReader:
    """Lines of a terminal, awaited: a blocking read would keep Ctrl-C from being heard."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._rest = b""

    def forget(self) -> None:
        """Lose what was typed before the question stood there: Enter is an answer."""
        import termios

        self._rest = b""
        with contextlib.suppress(termios.error):  # no terminal
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    async def read(self) -> str | None:
        """The next line; `None` at the end of input (Ctrl-D)."""
        while b"\n" not in self._rest:
            await self._ready()
            part = os.read(self._terminal, 65536)
            if not part:
                return None
            self._rest += part
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode("utf-8", "replace")

    async def _ready(self) -> None:
        import asyncio  # 20 ms, which no other command's help should wait for

        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._terminal, typed.set)
        try:
            await typed.wait()
        finally:
            loop.remove_reader(self._terminal)


async def ask_which_is_right(
    difference: Difference, read: Callable[[], Awaitable[str | None]]
) -> Choice | None:
    """Show an input and two answers, and wait for the number of the right one; no more input is no answer.

    Args:
        difference: What tells the repairs apart.
        read: The next line that is typed; `None` at the end of input.
    """
    first, second = difference.apart
    print_note(f"Two repairs pass all tests. For {difference.call} they give:")
    print_note(f"  1: {first}")
    print_note(f"  2: {second}")
    while True:
        print_note("Which is right: 1, 2 or neither?")
        typed = await read()
        if typed is None:
            return None
        said = typed.strip().lower()
        if said in NUMBERED:
            return NUMBERED[said]


def edit_text(text: str, path: str) -> str | None:
    """Let the person change a text; `None` where they left it as it was, or their editor failed.

    Args:
        text: What they get to see.
        path: What it is called, so that the editor knows the language.

    Raises:
        UsageError: There is no editor.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="suture-edit-") as folder:
        file = Path(folder) / PurePosixPath(path).name
        file.write_text(text, "utf-8", "surrogateescape")
        try:
            ended = subprocess.run([*shlex.split(editor), str(file)], check=False)
        except (OSError, ValueError) as fault:
            raise UsageError(
                f"the editor {editor!r} cannot be started: {fault}", remedy="set EDITOR to yours"
            ) from fault
        changed = file.read_text("utf-8", "surrogateescape")
    return changed if ended.returncode == 0 and changed != text else None
