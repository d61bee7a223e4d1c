"""How a run of the test command ended, in words, and what its output tells."""

from __future__ import annotations

from suture.core.records import CheckOutcome, Counterexample
from suture.sandbox import BOX, RunResult

LONGEST_OUTPUT = 8000
"""Characters; of more the beginning and the end are kept."""
STOPPED = "the time was up"
CUT_OFF = "the time was up before every test had run"
"""A remark on a verdict."""


def render_run_ending(result: RunResult) -> str:
    """How a program ended."""
    if result.status == "timeout":
        return STOPPED
    if result.signal is not None:
        return f"ended by signal {result.signal}"
    return f"exit code {result.exit_code}"


def hit_time_limit(outcome: CheckOutcome) -> bool:
    """Whether a command was stopped: by its status, or beside tests that all passed until then."""
    fact = outcome.counterexample
    return outcome.status == "timeout" or (fact is not None and fact.exception.startswith(STOPPED))


def decode_output(result: RunResult) -> str:
    """What a program printed, cut in the middle where it is long."""
    return truncate_output((result.stdout + result.stderr).decode("utf-8", "replace"))


def truncate_output(text: str) -> str:
    """An output as a verdict keeps it: cut in the middle where it is long."""
    if len(text) <= LONGEST_OUTPUT:
        return text
    return f"{text[: LONGEST_OUTPUT // 2]}\n[...]\n{text[-LONGEST_OUTPUT // 2 :]}"


def get_last_line(result: RunResult) -> str:
    """The last line that a program printed; empty where it printed none."""
    return (decode_output(result).strip().splitlines() or [""])[-1]


def collect_fault(test: str, complaint: str) -> Counterexample:
    """What kept pytest from collecting a test, out of its complaint."""
    errors = [line.removeprefix("E").strip() for line in complaint.splitlines() if line.startswith("E ")]
    places = [line for line in errors if line.startswith('File "')]
    file, line = "", None
    if places:
        path, _, rest = places[-1].removeprefix('File "').partition('", line ')
        file = path.removeprefix(f"{BOX}/")
        line = int(rest) if rest.isdigit() else None
    named = [text for text in errors if ":" in text and not text.startswith("File ")]
    exception = (named or errors or complaint.splitlines())[-1]
    return Counterexample(check_id=test, exception=exception[:500], file=file, line=line)
