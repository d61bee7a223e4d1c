"""What can be done with a result: verify its certificate, take back what it changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from suture.ledger import find_run
from suture.proof import Finding, Undone, find_applied_run, undo_run, verify_file
from suture.sandbox import Sandbox
from suture.settings import Settings, load_settings


async def verify(
    certificate: str | Path,
    *,
    project: str | Path | None = None,
    settings: Settings | None = None,
    sandbox: Sandbox | None = None,
) -> AsyncIterator[Finding]:
    """Replay a certificate in a clean sandbox and without a model; raises as `proof.verify_file` does.

    Args:
        certificate: Its file, or a run: `last`, an id, or the unique start or end of one.
        project: The project, with the change or without; the files in the run folder where not given.
        settings: Whose limits hold; from environment and files where not given.
        sandbox: The wall; the settings' where not given.

    Yields:
        What was found out; the first finding that is not `ok` is the last.
    """
    settings = settings or load_settings(Path.cwd()).settings
    where = Path(project) if project is not None else None
    async for finding in verify_file(certificate, where, settings, sandbox):
        yield finding


def undo(run: str | None = None, *, settings: Settings | None = None) -> Undone:
    """Take back what a run changed; raises as `proof.undo_run` does.

    Args:
        run: An id, the unique start or end of one; where not given, the last run that
            changed the project around the current folder.
        settings: Whose runs; from environment and files where not given.
    """
    home = (settings or load_settings(Path.cwd(), looks=True).settings).paths.home
    return undo_run(find_applied_run(home, Path.cwd()) if run is None else find_run(home, run))
