"""`suture review`, and the questions that a run asks on the terminal."""

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
from suture.interfaces.narrative.review_text import answer_instructions, render_review_question

if TYPE_CHECKING:
    from suture.api import Choice, DistinguishingInput, Review, ReviewAnswer, Reviewer
    from suture.interfaces.cli.terminal.run_progress import RunProgress

MAX_COUNTEREXAMPLES = 5
ANSWER_HELP = "y: yes, n or Enter: no, e: edit, h HINT: no, try this, l: later, x: stop the run"

ANSWER_HELP_BY_STAGE = {
    "test": "y: yes, trust it, n or Enter: no, h HINT: no, write another, l: later, x: stop the run",
    "safety": "y: yes, in this run, n or Enter: no, h HINT: no, try this, l: later, x: stop the run",
}

ANSWER_BY_KEY: dict[str, Choice] = {"1": "first", "2": "second", "n": "neither", "neither": "neither"}


@handle_errors
def review(run: RunName = "last", assignments: Assignments = None, as_json: Json = False) -> None:
    """Show the question that a waiting run asks: diagnosis, counterexamples and diff.

    Exits with 1 if the run is not waiting. Answer with `suture resume`.
    """
    from suture.api import pending_review

    question = pending_review(
        run, settings=load_command_settings(Path(), assignments, read_only=True).settings
    )
    if question is None:
        raise UsageError(
            f"run {run!r} is not waiting for an answer", remedy="check its state: suture history"
        )
    if as_json:
        from suture.interfaces.narrative.review_text import review_as_json

        print_json(review_as_json(question))
        return
    print_text(join_lines(_question_lines(question)) + f"\n{question.diff}")
    for line in answer_instructions(question.run_id, question.stage):
        print_note(line)


def terminal_reviewer(progress: RunProgress) -> Reviewer | None:
    """Return a reviewer that asks on the terminal, or `None` without one, so that the run is parked."""
    if not stdin_is_terminal():
        return None
    reader = _LineReader(sys.stdin.fileno())

    async def ask(question: Review) -> ReviewAnswer | None:
        with progress.paused():
            if question.difference is not None:
                return await _ask_difference(question.difference, reader)
            for line in _context_lines(question):
                print_note(line)
            _print_diff(question.diff)
            while True:
                print_note(ANSWER_HELP_BY_STAGE.get(question.stage, ANSWER_HELP))
                reader.discard_typed_input()  # before the question: only what is typed after it is an answer
                print_prompt(f"{render_review_question(question)} [y/N] ")
                typed = await reader.read()
                if typed is None or typed.strip().lower() == "l":
                    return None
                answer = _parse_answer(typed.strip(), question)
                if answer is not None:
                    return answer

    return ask


async def _ask_difference(difference: DistinguishingInput, reader: _LineReader) -> ReviewAnswer:
    """Ask which of two repairs is right; the run continues even if the person does not know."""
    from suture.api import ReviewAnswer

    return ReviewAnswer(choice=await ask_right_repair(difference, reader.read) or "unsure")


def _parse_answer(line: str, question: Review) -> ReviewAnswer | None:
    """Return the answer that a person typed, or `None` to ask again."""
    from suture.api import ReviewAnswer

    word, _, rest = line.partition(" ")
    word = word.lower()
    if word in ("h", "hint", "redirect") and rest.strip():
        return ReviewAnswer(choice="redirect", hint=rest.strip())
    if word in ("e", "edit") and question.stage not in ("test", "safety"):
        files = _edit_candidate(question, rest.strip())
        return ReviewAnswer(choice="edit", files=files) if files else None
    if rest:
        return None
    if word in ("y", "yes", "a", "approve"):
        return ReviewAnswer(choice="approve")
    if word in ("n", "no", "", "r", "reject"):
        return ReviewAnswer(choice="reject")
    return ReviewAnswer(choice="abort") if word in ("x", "abort") else None


def _edit_candidate(question: Review, path_argument: str) -> dict[str, str]:
    editable = question.editable
    if (
        not path_argument
        and len(editable) > 1
        and not (question.candidate and len(question.candidate.files) == 1)
    ):
        print_note(f"Which file? Type: e PATH, with one of: {', '.join(list(editable)[:20])}")
        return {}
    path = path_argument or next(iter(editable))
    if path not in editable:
        print_note(f"{path!r} is not one of the files that may change")
        return {}
    changed = edit_text(editable[path], path)
    if changed is None:
        print_note("Nothing was changed.")
    return {} if changed is None else {path: changed}


def _question_lines(question: Review) -> Iterator[str]:
    """Yield the question and its context, without the diff."""
    yield f"run {question.run_id} is waiting for your answer: {render_review_question(question)}"
    if question.difference is None:
        yield from _context_lines(question)


def _context_lines(question: Review) -> Iterator[str]:
    """Yield what a person needs to know for an answer."""
    from suture.interfaces.narrative.event_text import counterexample_lines, render_next_move

    for move in question.moves:
        yield f"next: {render_next_move(move.kind, _strategy_text(move.strategy, move.kind), move.reason)}"
    if question.diagnosis:
        answer = question.diagnosis
        yield f"diagnosis: {answer.category}, confidence {answer.confidence:.2f}: {answer.root_cause}"
    if question.candidate is None:
        yield "there is no candidate yet"
        return
    verdict = question.verdict
    total = len(verdict.passed) + len(verdict.failed) if verdict else 0
    passed = (
        f"{len(verdict.passed)} of {total} checks pass"
        if verdict and total
        else "no test or example to check it against"
    )
    yield f"candidate {question.candidate.hash[:8]} ({render_label(question.candidate.label)}): {passed}"
    for fact in question.facts[:MAX_COUNTEREXAMPLES]:
        yield from (f"  {line}" for line in counterexample_lines(fact))
    if verdict and verdict.failed and not question.facts:
        yield from (f"  | {line}" for line in verdict.output.strip().splitlines()[-15:])


def _strategy_text(strategy: str, kind: str) -> str:
    return f" ({strategy})" if kind == "repair" else ""


def _print_diff(diff: str) -> None:
    screen = make_console(stderr=True)
    for line in escape_unprintable(diff).splitlines():
        style = next((style for mark, style in DIFF_STYLES if line.startswith(mark)), None)
        screen.print(line, style=style)


class _LineReader:
    """Reads lines of a terminal asynchronously; a blocking read would delay Ctrl-C."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._rest = b""

    def discard_typed_input(self) -> None:
        """Discard what was typed before the question appeared, because Enter alone is an answer."""
        import termios

        self._rest = b""
        with contextlib.suppress(termios.error):  # stdin is not a terminal
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    async def read(self) -> str | None:
        """Return the next line, or `None` at the end of input (Ctrl-D)."""
        while b"\n" not in self._rest:
            await self._wait_for_input()
            part = os.read(self._terminal, 65536)
            if not part:
                return None
            self._rest += part
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode("utf-8", "replace")

    async def _wait_for_input(self) -> None:
        import asyncio  # takes 20 ms, which the help of other commands should not spend

        loop, typed = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._terminal, typed.set)
        try:
            await typed.wait()
        finally:
            loop.remove_reader(self._terminal)


async def ask_right_repair(
    difference: DistinguishingInput, read: Callable[[], Awaitable[str | None]]
) -> Choice | None:
    """Show an input with two answers and wait for the number of the right one; end of input is no answer.

    Args:
        difference: An input on which the repairs differ.
        read: Returns the next typed line, or `None` at the end of input.
    """
    first, second = difference.answer_pair
    print_note(f"Two repairs pass all tests. For {difference.call} they return:")
    print_note(f"  1: {first}")
    print_note(f"  2: {second}")
    while True:
        print_note("Which is right: 1, 2 or neither?")
        typed = await read()
        if typed is None:
            return None
        answer = typed.strip().lower()
        if answer in ANSWER_BY_KEY:
            return ANSWER_BY_KEY[answer]


def edit_text(text: str, path: str) -> str | None:
    """Open a text in the person's editor and return the new text.

    Returns `None` if the text is unchanged or the editor failed.

    Args:
        text: The text to edit.
        path: Its file name, from which the editor derives the language.

    Raises:
        UsageError: The editor cannot be started.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="suture-edit-") as folder:
        file = Path(folder) / PurePosixPath(path).name
        file.write_text(text, "utf-8", "surrogateescape")
        try:
            ended = subprocess.run([*shlex.split(editor), str(file)], check=False)
        except (OSError, ValueError) as fault:
            raise UsageError(
                f"the editor {editor!r} cannot be started: {fault}", remedy="set EDITOR to another editor"
            ) from fault
        changed = file.read_text("utf-8", "surrogateescape")
    return changed if ended.returncode == 0 and changed != text else None
