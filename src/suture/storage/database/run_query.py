"""The filters of a search for runs. They have their own module because the queries import SQLAlchemy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from suture.core.records import Outcome
from suture.core.tuning import MAX_EVENT_TIME_S
from suture.errors import UsageError
from suture.storage.tuning import MAX_FILTER_CHARS

OUTCOMES = (*get_args(Outcome), "running", "stopped", "error", "damaged")
RUN_KINDS = ("write", "heal")


@dataclass(frozen=True, kw_only=True)
class RunQuery:
    """Which runs are requested; an empty field does not restrict them.

    Attributes:
        search: Words that all occur in the task, its project, its outcome or its errors.
        kind: `write` or `heal`.
        model: A part of the model's name.
        project: A part of the project's folder.
        error: The kind of an error in the run, such as `KeyError`.
        since_s: The run started at this time or later, in seconds since the epoch.

    Raises:
        UsageError: No run has such an outcome or is of such a kind; a filter is too long, or a time is out of range.
    """

    search: str = ""
    outcome: str = ""
    kind: str = ""
    language: str = ""
    recipe: str = ""
    model: str = ""
    project: str = ""
    error: str = ""
    since_s: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, str) and len(value) > MAX_FILTER_CHARS:
                message = f"the {name} to look for is longer than {MAX_FILTER_CHARS} characters"
                raise UsageError(message, remedy="give a part of it")
        for name, value, choices in (("outcome", self.outcome, OUTCOMES), ("kind", self.kind, RUN_KINDS)):
            if value and value not in choices:
                message = f"no run has the {name} {value!r}"
                raise UsageError(message, remedy=f"one of {', '.join(choices)}")
        if self.since_s is not None and not abs(self.since_s) <= MAX_EVENT_TIME_S:
            raise UsageError(
                f"{self.since_s!r} is not a valid start time", remedy="give seconds since the epoch"
            )

    @property
    def is_set(self) -> bool:
        """Return whether the query restricts anything."""
        return self != RunQuery()
