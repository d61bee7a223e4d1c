"""Runs that wait for a person: what they ask."""

from __future__ import annotations

from pathlib import Path

from suture.api.replay_resume import run_folder
from suture.loop.review.reviewing import Review
from suture.loop.review.reviewing import pending_review as question_of_run
from suture.settings import Settings


def pending_review(run: str | Path, *, settings: Settings | None = None) -> Review | None:
    """The question that a run waits for an answer to; `None` where it waits for none.

    Args:
        run: `last`, an id, the unique start or end of one, or a run's folder.
        settings: Whose runs; from environment and files where not given.

    Raises:
        UsageError: There is no such run.
        StorageError: Its folder is damaged.
    """
    return question_of_run(run_folder(run, settings))
