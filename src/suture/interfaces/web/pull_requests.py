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
    DeliveredChange,
    GitHub,
    check_open_heals,
    open_github,
    prepare_run_delivery,
    read_remote,
    require_change,
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
    """A pull request that can be opened once its change has been verified again.

    Attributes:
        has_branch: Whether the branch for the change exists already.
    """

    folder: RunFolder
    change: DeliveredChange
    host: GitHub
    has_branch: bool

    def find_address(self) -> str | None:
        """Return the address of this pull request, or `None` if it is not on GitHub.

        Raises:
            RequestRefused: The pull request of this commit delivers the change of another run.
        """
        pull = self.host.find_pull(self.change) if self.has_branch else None
        if pull is None:
            return None
        if not pull.certificate_matches:
            raise RequestRefused(409, f"{REFUSAL_TEXTS['already_delivered']}: {pull.address}")
        return pull.address

    def open(self) -> None:
        """Open the pull request unless it is there, and record it in the run's ledger."""
        with Ledger(self.folder.ledger_path, SystemClock()) as ledger:
            if last_payload(ledger.events, kinds.PullRequestOpened) is not None:
                return  # another request has just opened it
            address = self.find_address()
            if address is None:
                if self.has_branch:  # an interrupted delivery has left it
                    self.host.delete_branch(self.change)
                address = self.host.open_draft(self.change)
            ledger.append(kinds.PullRequestOpened(address=address))


def prepare_pull_request(run: str, settings: Settings) -> PreparedPullRequest | None:
    """Check the gates of `suture ci` for the change of a run, before time is spent on verification.

    Returns:
        The pull request to open; `None` if it is open already. Its address is in the ledger then.

    Raises:
        RequestRefused: A gate refuses the change, or the commit has a pull request with another change.
        UsageError: The run is somebody else's, its project is not a checkout from GitHub, or the commit there is not
            the one that the run repaired.
        PrerequisiteError: The server has no token, or the token lacks permission.
        CodeHostError: GitHub refuses or does not respond.
    """
    # A person has chosen this run, so `ci.new_only`, which chooses what to heal, does not count.
    ci = settings.ci.model_copy(update={"delivery": "pull_request", "new_only": False})
    settings = settings.model_copy(update={"ci": ci})
    recorded = load_recorded_run(run, settings)
    if not recorded.is_own:
        raise UsageError(f"run {run} is not among your own runs", remedy="repair the project here")
    if last_payload(recorded.events, kinds.PullRequestOpened) is not None:
        return None
    pipeline = read_remote(recorded.project, os.environ)
    host = open_github(pipeline, settings)
    delivery = prepare_run_delivery(recorded, pipeline, settings)
    refusal = delivery.refusal or check_open_heals(delivery, host, settings)
    has_branch = refusal is not None and refusal.reason == "already_delivered"
    if refusal is not None and not has_branch:
        raise RequestRefused(409, f"{REFUSAL_TEXTS[refusal.reason]}: {refusal.detail}")
    change = require_change(delivery)
    prepared = PreparedPullRequest(folder=recorded.folder, change=change, host=host, has_branch=has_branch)
    if prepared.find_address() is not None:
        prepared.open()  # it was opened, but the record was lost in a crash
        return None
    return prepared
