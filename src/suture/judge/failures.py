"""Why a check did not pass, as codes with data, and the one place that turns them into text.

Program logic compares `Counterexample.code`. The text goes to people and to models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from suture.core.records import CheckOutcome, CodeFrame, Counterexample, FailureCode
from suture.judge.tuning import MAX_EXCEPTION_CHARS, MAX_MESSAGE_CHARS, MAX_OUTPUT_CHARS
from suture.project.languages.diagnostics.reports import ANSI_COLOUR
from suture.sandbox import BOX, RunResult

EXCEPTION_LINE = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Failed)(?::|$)")
"""The first line of an exception in pytest's error text."""
ERROR_PREFIX = re.compile(r"\berror: ", re.IGNORECASE)
"""Matches what most programs print before a message; pytest prints two more lines after it."""
COLLECTION_FRAME = re.compile(r"(?!/|<|\.\.)(\S+\.py):(\d{1,9}): in (\S+)$")
"""A frame of a project's file in pytest's error text, such as `shop/cart.py:3: in <module>`."""
FAILURE_TEXTS: Mapping[FailureCode, str] = {
    "time_limit": "the time limit was reached",
    "signal": "ended by signal {number}",
    "exit_code": "exit code {number}",
    "test_timeout": "no end within {seconds:.3g} s",
    "not_run": "pytest never ran it ({ending})",
    "not_reported": "{runner} never reported it ({ending})",
    "no_tests_reported": "no test was reported",
    "fewer_tests": "only {ran} of {expected} tests ran",
    "skipped_by_code": "skipped by the code under test",
    "example_changed": "the example in the docstring was changed",
    "machinery_changed": "the code under test changed {name}",
    "hidden_use": "the code under test used {name} while the tests ran, which its text does not show",
    "secret_reached": "the code under test reached {name}",
    "failure_lost": "an assertion of a test failed or was passed over, and the test passed",
    "machinery_unwatched": "nothing watched what the code under test changed",
    "inputs_changed": "{path!r} was {action} while the tests ran",
    "unconfirmed_pass": "another process ran it and did not confirm its result",
    "no_answer": "no answer within {seconds:g} s",
    "cpu_limit": "it computed for more than {seconds:g} s",
    "malformed_answer": "the answer is not data",
    "process_ended": "the program ended",
    "judge_ended": "the test ended the judge",
    "suppressed": "the change silences the tool: {names}",
    "changed_argument": "the test passes only because {call} changes its argument, which the test compares with",
}
"""Failure code -> its message. The messages of the other codes are written where those failures are found."""


def render_failure(code: FailureCode, **data: object) -> str:
    """Return the message of a failure, with its data filled in."""
    return FAILURE_TEXTS[code].format(**data)


def make_failure(
    check_id: str, code: FailureCode, *, call: str = "", file: str = "", **data: object
) -> Counterexample:
    """Return the counterexample of a failure that Suture itself saw; `data` fills in the code's message."""
    text = render_failure(code, **data)
    return Counterexample(check_id=check_id, call=call, exception=text, file=file, code=code)


def get_ending_code(result: RunResult) -> FailureCode:
    """Return how a run ended."""
    if result.status == "timeout":
        return "time_limit"
    return "exit_code" if result.signal is None else "signal"


def render_run_ending(result: RunResult) -> str:
    """Return how a run ended, as text."""
    number = result.exit_code if result.signal is None else result.signal
    return render_failure(get_ending_code(result), number=number)


def make_ending_failure(check_id: str, result: RunResult, *, call: str = "") -> Counterexample:
    """Return the counterexample of a run that failed as a whole, with the last line that it printed."""
    text = f"{render_run_ending(result)}: {get_last_line(result)}".rstrip(": ")
    return Counterexample(check_id=check_id, call=call, exception=text, code=get_ending_code(result))


def make_inconsistent_ending(check_id: str, result: RunResult, *, call: str = "") -> Counterexample:
    """Return the counterexample of a run that ended badly although none of its tests failed."""
    text = f"{render_run_ending(result)} though no test failed"
    return Counterexample(check_id=check_id, call=call, exception=text, code=get_ending_code(result))


def hit_time_limit(outcome: CheckOutcome) -> bool:
    """Whether the time limit stopped a command, even if all tests passed until then."""
    fact = outcome.counterexample
    return outcome.status == "timeout" or (fact is not None and fact.code == "time_limit")


def decode_output(result: RunResult) -> str:
    """Return what a program printed, without colours, shortened in the middle if it is long."""
    text = (result.stdout + result.stderr).decode("utf-8", "replace")
    return truncate_output(ANSI_COLOUR.sub("", text))


def truncate_output(text: str) -> str:
    """Return an output as a verdict contains it: shortened in the middle if it is long."""
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    return f"{text[: MAX_OUTPUT_CHARS // 2]}\n[...]\n{text[-MAX_OUTPUT_CHARS // 2 :]}"


def get_last_line(result: RunResult) -> str:
    """Return the last line that a program printed; empty if it printed nothing."""
    return (decode_output(result).strip().splitlines() or [""])[-1]


def get_error_line(result: RunResult) -> str:
    """Return the last line that a program printed about an error; its last line if none says so."""
    lines = decode_output(result).splitlines()
    return next(
        (line.strip() for line in reversed(lines) if ERROR_PREFIX.search(line)), get_last_line(result)
    )


def parse_collection_error(test: str, error: str) -> Counterexample:
    """Return the counterexample of a test that pytest could not collect, from pytest's error text."""
    errors = [line.removeprefix("E").strip() for line in error.splitlines() if line.startswith("E ")]
    locations = [line for line in errors if line.startswith('File "')]
    file, line = "", None
    if locations:
        path, _, number = locations[-1].removeprefix('File "').partition('", line ')
        file = path.removeprefix(f"{BOX}/")
        line = int(number) if number.isdigit() else None
    starts = [number for number, text in enumerate(errors) if EXCEPTION_LINE.match(text)]
    # In a chain of exceptions, the last one ended the collection; its message may have more lines.
    lines = errors[starts[-1] :] if starts else (errors or error.splitlines())[-1:]
    frames = tuple(
        CodeFrame(file=match[1], line=int(match[2]), function="" if "<" in match[3] else match[3])
        for match in map(COLLECTION_FRAME.match, error.splitlines())
        if match is not None
    )
    return Counterexample(
        check_id=test,
        exception=lines[0][:MAX_EXCEPTION_CHARS],
        file=file or (frames[-1].file if frames else ""),
        line=line if file else (frames[-1].line if frames else None),
        message="\n".join(lines)[:MAX_MESSAGE_CHARS] if len(lines) > 1 else "",
        frames=frames,
    )
