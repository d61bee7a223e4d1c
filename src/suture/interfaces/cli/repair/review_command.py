"""`suture review`, and the questions that a run asks on the terminal."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from suture.core.temporary_folders import temporary_folder
from suture.errors import UsageError, describe_fault
from suture.interfaces.cli.terminal.command_options import (
    Assignments,
    Json,
    RunName,
    load_command_settings,
    require_run,
)
from suture.interfaces.cli.terminal.error_reporting import handle_errors
from suture.interfaces.cli.terminal.terminal_output import (
    make_console,
    print_diff,
    print_json,
    print_note,
    print_prompt,
    print_text,
    stdin_is_terminal,
)
from suture.interfaces.narrative.plain_text import format_share, join_lines, name_candidate
from suture.interfaces.narrative.review_text import (
    answer_instructions,
    example_lines,
    render_review_question,
)

if TYPE_CHECKING:
    from suture.api import Choice, DistinguishingInput, Review, ReviewAnswer, Reviewer
    from suture.core.ledger.kinds import ComparedChange, ProposedExample
    from suture.interfaces.cli.terminal.run_progress import RunProgress

MAX_COUNTEREXAMPLES = 5
"""Counterexamples that a question shows. Chosen by judgement; not measured."""
ANSWER_HELP = "y: yes; n or Enter: no; e: edit; h HINT: no, try this; l: later; x: stop the run"
ANSWER_HELP_BY_STAGE = {
    "test": "y: yes, trust it; n or Enter: no; h HINT: no, write another; l: later; x: stop the run",
    "safety": "y: yes, in this run; n or Enter: no; h HINT: no, try this; l: later; x: stop the run",
    "examples": "y: yes, all of them; n: no, one is wrong; e: edit the results; l: later; x: stop the run",
}
CALL_HELP = (
    "Type a call with its result. Or n or Enter: I know none; e: open an editor; l: later; x: stop the run"
)
CORRECTION_HELP = (
    "Type the call of a wrong result with what is right, such as {call} == ...: the other results on which all "
    "versions agree then count as right. Of another call only its own result counts. Or e: correct several in an "
    "editor; n: end the run with none of them; Enter: back to the question"
)
DIFFERENCE_HELP = "n: neither; u: I do not know, go on without an answer; l: later"
ANSWER_BY_KEY: dict[str, Choice | Literal["unsure"]] = {
    "1": "first",
    "2": "second",
    "n": "neither",
    "neither": "neither",
    "u": "unsure",
    "unsure": "unsure",
}


@handle_errors
def review(run: RunName = "last", assignments: Assignments = None, as_json: Json = False) -> None:
    """Show the question that a waiting run asks: diagnosis, counterexamples and diff.

    Exits with 1 if the run is not waiting. Answer with `suture resume`.
    """
    settings = load_command_settings(Path(), assignments, read_only=True).settings
    require_run(run, settings)
    from suture.api import pending_review

    question = pending_review(run, settings=settings)
    if question is None:
        raise UsageError(
            f"run {run!r} is not waiting for an answer", remedy="check its state: suture history"
        )
    if as_json:
        from suture.interfaces.narrative.review_text import review_as_json

        print_json(review_as_json(question))
        return
    lines = [f"run {question.run_id} is waiting for your answer: {render_review_question(question)}"]
    if question.difference is None:
        lines += [*_context_lines(question), *example_lines(question)]
    else:
        from suture.interfaces.narrative.rival_text import difference_lines

        lines += difference_lines(question.difference, question.changes)
    print_text(join_lines(lines) + f"\n{question.diff}")
    instructions = answer_instructions(question.run_id, question.stage, has_examples=bool(question.examples))
    for line in instructions:
        print_note(line)


def terminal_reviewer(progress: RunProgress) -> Reviewer | None:
    """Return a reviewer that asks on the terminal, or `None` without one, so that the run is parked."""
    if not stdin_is_terminal():
        return None
    from suture.api import ReviewAnswer

    reader = _LineReader(sys.stdin.fileno())

    async def ask(question: Review) -> ReviewAnswer | None:
        with progress.paused():
            if question.difference is not None:
                choice = await ask_right_repair(question.difference, question.changes, reader.read)
                return ReviewAnswer(choice=choice) if choice is not None else None
            is_about_results = question.stage == "examples"
            for line in _written_code_lines(question) if is_about_results else _context_lines(question):
                print_note(line)
            if not is_about_results:
                print_diff(question.diff, make_console(stderr=True))
            needs_call = is_about_results and not question.examples
            choices = "" if needs_call else "[y/n/edit]" if is_about_results else "[y/N]"
            answer_help = CALL_HELP if needs_call else ANSWER_HELP_BY_STAGE.get(question.stage, ANSWER_HELP)
            while True:
                print_note(answer_help)
                reader.discard_typed_input()  # before the question: only what is typed after it is an answer
                print_prompt(" ".join(filter(None, (render_review_question(question), choices))) + " ")
                typed = await reader.read()
                if typed is None or typed.strip().lower() == "l":
                    return None
                answer = _parse_answer(typed.strip(), question)
                if answer is not None and question.examples and answer.choice == "approve":
                    answer = await _settle_differing_results(question, reader.read)
                elif answer is not None and question.examples and answer.choice == "reject":
                    answer = await _correct_result(question, reader.read)
                if answer is not None:
                    return answer

    return ask


def _parse_answer(line: str, question: Review) -> ReviewAnswer | None:
    """Return the answer that a person typed, or `None` to ask again."""
    from suture.api import ReviewAnswer
    from suture.loop.review.examples import EXAMPLES_FILE, render_typed_example

    # Where results are shown, one typed call would replace all of them: the editor changes them instead.
    if question.stage == "examples" and not question.examples and "==" in line:
        files = {EXAMPLES_FILE: render_typed_example(line)}
        return _accept_answer(ReviewAnswer(choice="edit", files=files), question)
    word, _, argument = line.partition(" ")
    word = word.lower()
    if word in ("h", "hint", "redirect") and argument.strip():
        return ReviewAnswer(choice="redirect", hint=argument.strip())
    if word in ("e", "edit") and question.stage not in ("test", "safety"):
        files = _edit_candidate(question, argument.strip())
        return _accept_answer(ReviewAnswer(choice="edit", files=files), question) if files else None
    if argument:
        return None
    if not word and question.examples:
        print_note("Enter alone neither confirms nor rejects a result.")
        return None
    if word in ("y", "yes", "a", "approve"):
        approval = ReviewAnswer(choice="approve")
        # Results that differ are chosen one by one after a yes, so that it fits although it alone would not.
        return approval if question.examples else _accept_answer(approval, question)
    if word in ("n", "no", "", "r", "reject"):
        return ReviewAnswer(choice="reject")
    return ReviewAnswer(choice="abort") if word in ("x", "abort") else None


def _accept_answer(answer: ReviewAnswer, question: Review) -> ReviewAnswer | None:
    """Return an answer that fits the question; say why, and return `None`, if it does not."""
    try:
        question.require_answered_by(answer)
    except UsageError as fault:
        print_note(f"{fault.message}: {fault.remedy}")
        return None
    return answer


async def _settle_differing_results(
    question: Review, read: Callable[[], Awaitable[str | None]]
) -> ReviewAnswer | None:
    """Return the answer to "yes": the results that all versions give, and those that the person picks of the others."""
    from suture.api import ReviewAnswer
    from suture.loop.review.examples import EXAMPLES_FILE, render_agreed

    picked: list[ProposedExample] = []
    for example in question.examples:
        if len(example.answers) > 1:
            options = "; ".join(f"{number}: {answer}" for number, answer in enumerate(example.answers, 1))
            print_prompt(f"Which result is right for {example.call}? {options}; Enter: leave this call out ")
            typed = (await read() or "").strip()
            if typed in map(str, range(1, len(example.answers) + 1)):
                picked.append(replace(example, answers=(example.answers[int(typed) - 1],)))
            elif typed:
                print_note(f"{typed!r} is none of these numbers: this call is left out.")
    if not picked:
        return _accept_answer(ReviewAnswer(choice="approve"), question)
    text = "\n".join(render_agreed([*question.examples, *picked]))
    return ReviewAnswer(choice="edit", files={EXAMPLES_FILE: text})


async def _correct_result(question: Review, read: Callable[[], Awaitable[str | None]]) -> ReviewAnswer | None:
    """Return the answer to "no": the results with one of them corrected, or `None` to ask the question again."""
    from suture.api import ReviewAnswer
    from suture.loop.review.examples import (
        EXAMPLES_FILE,
        find_typed_example,
        render_agreed,
        render_typed_example,
    )

    print_note(CORRECTION_HELP.format(call=question.examples[0].call))
    print_prompt("Which result is wrong? ")
    typed = (await read() or "").strip()
    if "==" not in typed:
        answer = _parse_answer(typed, question) if typed else None
        if answer is not None and answer.choice != "approve":
            return answer
        if typed and typed.lower() not in ("e", "edit"):
            print_note(
                f"{typed!r} does not say what is right. Type it as: {question.examples[0].call} == ..."
            )
        return None
    corrected = find_typed_example(typed, question.examples)
    if corrected is None:
        print_note("Only this call counts: the results above are not confirmed.")
        others = []
    else:
        others = render_agreed([example for example in question.examples if example is not corrected])
    text = "\n".join([*others, render_typed_example(typed)])
    return _accept_answer(ReviewAnswer(choice="edit", files={EXAMPLES_FILE: text}), question)


def _edit_candidate(question: Review, path_argument: str) -> dict[str, str]:
    """Let the person edit a file; return its path and new content, or nothing if the content is unchanged."""
    editable = question.editable
    # The files of the candidate come first in `editable`.
    has_obvious_file = len(editable) <= 1 or (question.candidate and len(question.candidate.files) == 1)
    if not path_argument and not has_obvious_file:
        print_note(f"Which file? Type: e PATH, with one of: {', '.join(list(editable)[:20])}")
        return {}
    path = path_argument or next(iter(editable))
    if path not in editable:
        print_note(f"{path!r} is not one of the files that may change")
        return {}
    new_text = edit_text(editable[path], path)
    if new_text is None:
        print_note("Nothing was changed.")
        return {}
    return {path: new_text}


def _written_code_lines(question: Review) -> Iterator[str]:
    """Yield new code that nothing judges yet, and what it returns."""
    for text in question.candidate.files.values() if question.candidate else ():
        yield from (f"  {line}" for line in text.splitlines())
    if question.examples:
        yield "No test or example says what is right. The code returns:"
        yield from example_lines(question)
    else:
        yield "No test or example says what is right, and no call that Suture guessed returned a value."
        yield from example_lines(question)


def _context_lines(question: Review) -> Iterator[str]:
    """Yield what a person needs to know for an answer."""
    from suture.interfaces.narrative.event_text import counterexample_lines, render_next_move
    from suture.interfaces.narrative.run_story import MAX_OUTPUT_LINES

    for move in question.moves:
        strategy = f" ({move.strategy})" if move.kind == "repair" else ""
        yield f"next: {render_next_move(move.kind, strategy, move.reason)}"
    if diagnosis := question.diagnosis:
        yield f"diagnosis: {diagnosis.category}, confidence {diagnosis.confidence:.2f}: {diagnosis.root_cause}"
    if question.candidate is None:
        yield "there is no candidate yet"
        return
    verdict = question.verdict
    total = len(verdict.passed) + len(verdict.failed) if verdict else 0
    counts = "no test or example to check it against"
    if verdict and total:
        counts = format_share(len(verdict.passed), total, "pass")
    yield f"{name_candidate(question.candidate.hash, question.candidate.label)}: {counts}"
    for counterexample in question.facts[:MAX_COUNTEREXAMPLES]:
        yield from (f"  {line}" for line in counterexample_lines(counterexample))
    if verdict and verdict.failed and not question.facts:
        yield from (f"  | {line}" for line in verdict.output.strip().splitlines()[-MAX_OUTPUT_LINES:])


class _LineReader:
    """Reads lines of a terminal asynchronously; a blocking read would delay Ctrl-C."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._buffer = b""

    def discard_typed_input(self) -> None:
        """Discard what was typed before the question appeared, because Enter alone is an answer."""
        import termios

        self._buffer = b""
        with contextlib.suppress(termios.error):  # stdin is not a terminal
            termios.tcflush(self._terminal, termios.TCIFLUSH)

    async def read(self) -> str | None:
        """Return the next line, or `None` at the end of input (Ctrl-D)."""
        while b"\n" not in self._buffer:
            await self._wait_for_input()
            content = os.read(self._terminal, 65536)
            if not content:
                return None
            self._buffer += content
        line, self._buffer = self._buffer.split(b"\n", 1)
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
    difference: DistinguishingInput,
    changes: Sequence[ComparedChange],
    read: Callable[[], Awaitable[str | None]],
) -> Choice | Literal["unsure"] | None:
    """Show an input with two answers and wait for the number of the right one; `None` if the person answers later.

    `read` returns the next typed line, or `None` at the end of input, which is not an answer.
    """
    from suture.interfaces.narrative.rival_text import difference_lines

    print_note(f"Two repairs pass all tests. For {difference.call} they return:")
    for line in difference_lines(difference, changes):
        print_note(line)
    options = "; ".join(f"{number}: {answer}" for number, answer in enumerate(difference.answer_pair, 1))
    while True:
        print_note(f"Which result is right for {difference.call}? {options}; {DIFFERENCE_HELP}")
        typed = await read()
        if typed is None or typed.strip().lower() in ("l", "later"):
            return None
        answer = typed.strip().lower()
        if answer in ANSWER_BY_KEY:
            return ANSWER_BY_KEY[answer]


def edit_text(text: str, path: str) -> str | None:
    """Return the edited string from the person's editor, or `None` if it is unchanged or the editor failed.

    The editor derives the language from the name of the file at `path`.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    print_note(
        f"Opening the editor {editor!r}. Save and close the file to continue; unsaved, nothing changes."
    )
    with temporary_folder("suture-edit-") as folder:
        file = folder / PurePosixPath(path).name
        file.write_text(text, "utf-8", "surrogateescape")
        try:
            process = subprocess.run([*shlex.split(editor), str(file)], check=False)
        except (OSError, ValueError) as fault:
            raise UsageError(
                f"the editor {editor!r} cannot be started: {describe_fault(fault)}",
                remedy="set EDITOR to another editor",
            ) from fault
        new_text = file.read_text("utf-8", "surrogateescape")
    return new_text if process.returncode == 0 and new_text != text else None
