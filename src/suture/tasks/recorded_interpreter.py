"""What `python` meant in a run's test command, as its first event says."""

from __future__ import annotations

from pathlib import Path

from suture.languages import Interpreter
from suture.ledger import RunFolder
from suture.ledger.kinds import RunStarted
from suture.records import from_plain


def recorded_interpreter(started: RunStarted, folder: RunFolder, home: Path) -> Interpreter | None:
    """The program while it is there; `None` where it is gone, there was none, or the run is somebody else's.

    A stranger's record names no program that is started here.

    Args:
        started: The first event of the run.
        folder: The run's folder.
        home: Where the runs of whoever asks lie.

    Raises:
        ValueError: The event is damaged.
    """
    if not started.interpreter or not is_among(folder, home):
        return None
    program = from_plain(Interpreter, started.interpreter)
    return program if Path(program.executable).exists() else None


def is_among(folder: RunFolder, home: Path) -> bool:
    """Whether a run lies among those of whoever asks."""
    return home.resolve() in folder.path.resolve().parents
