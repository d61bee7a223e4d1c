"""Open a draft pull request on GitHub with the change of a run, for a person who asks for it on the page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from suture.api.past_runs import load_recorded_run
from suture.core.ledger import Ledger, RunFolder, SystemClock, kinds, last_payload, read_ledger
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, StorageError, UsageError
from suture.interfaces.ci import (
    REFUSAL_TEXTS,
    CodeHost,
    PipelineDelivery,
    check_open_heals,
    deliver_change,
    open_host,
    prepare_run_delivery,
    read_remote,
)
from suture.interfaces.web.problem_details import RequestRefused
from suture.interfaces.web.rest_schemas import PullRequest


def describe_pull_request(folder: RunFolder, project: Path, settings: Settings) -> PullRequest | None:
    """Return the pull request of a healed run, or whether one can be opened; `None` without a remote on GitHub."""
    opened = last_payload(read_ledger(folder.ledger_path).events, kinds.PullRequestOpened)
    if opened is not None:
        return PullRequest(state="opened", address=opened.address)
    try:
        read_remote(project, os.environ)
    except (PrerequisiteError, StorageError, UsageError):
        return None
    return PullRequest(state="possible" if settings.keys.ci is not None else "no_token")


@dataclass(frozen=True, kw_only=True)
class PreparedPullRequest:
    """A pull request that can be opened once its change has been verified again."""

    folder: RunFolder
    delivery: PipelineDelivery
    host: CodeHost | None
    settings: Settings

    def open(self) -> None:
        """Open the pull request, and record it in the run's ledger."""
        with Ledger(self.folder.ledger_path, SystemClock()) as ledger:
            delivered = deliver_change(self.delivery, self.host, self.settings)
            ledger.append(kinds.PullRequestOpened(address=delivered.address))


def prepare_pull_request(run: str, settings: Settings) -> PreparedPullRequest:
    """Check the gates of `suture ci` for the change of a run, before time is spent on verification.

    Raises:
        RequestRefused: A gate refuses the change.
        UsageError: The run is somebody else's, its project is no checkout from GitHub, or the commit there is not
            what the run has repaired.
        PrerequisiteError: The server has no token, or the token lacks permission.
        CodeHostError: GitHub refuses or does not respond.
    """
    # A person has chosen this run, so `ci.new_only`, which chooses what to heal, does not count.
    ci = settings.ci.model_copy(update={"delivery": "pull_request", "new_only": False})
    settings = settings.model_copy(update={"ci": ci})
    recorded = load_recorded_run(run, settings)
    if not recorded.is_own:
        raise UsageError(f"run {run} is not among your own runs", remedy="repair the project here")
    pipeline = read_remote(recorded.project, os.environ)
    host = open_host(pipeline, settings)
    delivery = prepare_run_delivery(recorded, pipeline, settings)
    refusal = delivery.refusal or check_open_heals(delivery, host, settings)
    if refusal is not None:
        raise RequestRefused(409, f"{REFUSAL_TEXTS[refusal.reason]}: {refusal.detail}")
    return PreparedPullRequest(folder=recorded.folder, delivery=delivery, host=host, settings=settings)
