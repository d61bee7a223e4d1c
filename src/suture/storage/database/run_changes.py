"""Which runs have changed since their rows were written, found without comparing the ledgers of all runs.

A database remembers for each folder of state how far it has read the log of changed runs (`core.change_log`), which
folders of runs there were, and which runs to compare again in any case: those that are being written, have not ended,
or were written a moment ago. Each of these finds a part of the changes:

- a run that a process of this machine starts, resumes, applies or undoes, also one that was killed: the log
- a run that was deleted, or copied from another machine: the names of the folders
- a folder whose ledger arrives later, or in pieces: it is compared until it has ended
- a ledger that another program replaces in a known folder: `differs_from_row`, for the runs that are listed, and a
  comparison of all ledgers once a day
"""

from __future__ import annotations

import json
import os
import platform
import stat
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from suture.core.change_log import LEDGER_FILE, RUNS_FOLDER, LoggedChanges, LogPosition, read_changes
from suture.core.file_locks import is_locked
from suture.storage.database.run_index import RunIndex
from suture.storage.tuning import (
    MAX_COMPARISON_AGE_S,
    MAX_PARAMETERS,
    MAX_UNSAVED_COMPARISONS,
    SETTLING_TIME_S,
)

UNFINISHED_OUTCOMES = ("running", "waiting", "stopped", "damaged")
"""Outcomes of runs whose ledgers will probably grow, or have not arrived completely."""
ROW_COLUMNS = "run_id, namespace, ledger_bytes, ledger_mtime_ns, outcome"
Rows = Mapping[str, Sequence[tuple[Any, ...]]]
"""Run id -> `(namespace, ledger_bytes, ledger_mtime_ns, outcome)` of each of its rows. A run has a second row, in the
default namespace, if it was first read before its ledger named its own."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """What a database knows of a folder of state.

    Attributes:
        names_checksum: Of the names of the folders of runs, in any order.
        unsettled: Run to compare again -> whether a process was writing it.
        compared_s: When all ledgers were compared, in seconds since the epoch.
    """

    log: LogPosition
    names_checksum: int
    unsettled: Mapping[str, bool]
    compared_s: float


@dataclass(frozen=True, kw_only=True)
class RunChanges:
    """How the ledgers of a folder of state differ from their rows.

    Attributes:
        stale: Run to read again -> whether it may change without another line in the log; the newest run first.
        rows: The rows of these runs.
        deleted: `(namespace, run)` of rows whose runs are gone.
        scan: What to remember when the stale runs have been read.
        compared: How many ledgers were compared.
        up_to_date: How many runs need not be read.
    """

    stale: Mapping[str, bool]
    rows: Rows
    deleted: Sequence[tuple[str, str]]
    scan: Scan
    compared: int
    up_to_date: int

    @property
    def is_worth_saving(self) -> bool:
        """Return whether the next comparison takes noticeably less time if this one is remembered."""
        return self.compared - len(self.scan.unsettled) > MAX_UNSAVED_COMPARISONS


@dataclass(kw_only=True)
class _Comparison:
    """The comparison of some ledgers with their rows, as far as it has come."""

    stale: dict[str, bool] = field(default_factory=dict)
    deleted: list[tuple[str, str]] = field(default_factory=list)
    unsettled: dict[str, bool] = field(default_factory=dict)
    without_ledger: int = 0


def find_run_changes(index: RunIndex, home: Path, *, compare_all: bool = False) -> RunChanges:
    """Compare the ledgers of a folder of state with their rows, as far as they may have changed."""
    now_s = time.time()
    scan = None if compare_all else _load_scan(index, home)
    if scan is not None and not 0 <= now_s - scan.compared_s < MAX_COMPARISON_AGE_S:
        scan = None
    logged = read_changes(home, scan.log if scan is not None else None)
    names = _list_names(home)  # after the log, so that the folders of logged runs are among them
    names_checksum = _checksum(names)
    if scan is None or not logged.is_complete:
        scan, runs = None, set(map(os.fsdecode, names))
        rows = _read_rows(index, runs, all_rows=True)
        runs |= rows.keys()
    else:
        runs = {*scan.unsettled, *logged.runs}
        rows = _read_rows(index, runs)
        added = logged.runs - rows.keys() - scan.unsettled.keys()
        if names_checksum != scan.names_checksum + _checksum(map(os.fsencode, added)):
            present = set(map(os.fsdecode, names))
            all_rows = _read_rows(index, present, all_rows=True)
            runs |= present ^ all_rows.keys()
            rows = {run: all_rows[run] for run in runs & all_rows.keys()}
    comparison = _compare(index, home, runs, rows, logged, scan)
    return RunChanges(
        stale=comparison.stale,
        rows=rows,
        deleted=comparison.deleted,
        scan=Scan(
            log=logged.end,
            names_checksum=names_checksum,
            unsettled=comparison.unsettled,
            compared_s=scan.compared_s if scan is not None else now_s,
        ),
        compared=len(runs),
        up_to_date=max(0, len(names) - comparison.without_ledger - len(comparison.stale)),
    )


def _compare(
    index: RunIndex, home: Path, runs: Iterable[str], rows: Rows, logged: LoggedChanges, scan: Scan | None
) -> _Comparison:
    found = _Comparison()
    folder = f"{home}/{RUNS_FOLDER}"  # there may be 100,000 runs, for which paths as objects take too long
    settled_ns = (time.time() - SETTLING_TIME_S) * 1e9
    for run in sorted(runs, reverse=True):
        run_rows = rows.get(run, ())
        ledger = f"{folder}/{run}/{LEDGER_FILE}"
        try:
            ledger_stat = os.stat(ledger)  # noqa: PTH116
        except OSError:
            ledger_stat = None
        if ledger_stat is None or not stat.S_ISREG(ledger_stat.st_mode):
            if index.is_beside_runs:
                found.deleted += [(namespace, run) for namespace, *_ in run_rows]
            if os.path.isdir(f"{folder}/{run}"):  # noqa: PTH112
                found.without_ledger += 1
                found.unsettled[run] = False
            continue
        is_final = len(run_rows) == 1 and run_rows[0][-1] not in UNFINISHED_OUTCOMES
        was_opened = run in logged.runs or (not is_final if scan is None else scan.unsettled.get(run, False))
        try:
            is_written = was_opened and is_locked(Path(ledger))
        except OSError:  # it was deleted at this moment
            is_written = False
        if _is_stale(index, ledger_stat, run_rows, is_written=is_written):
            found.stale[run] = is_written or ledger_stat.st_mtime_ns > settled_ns
        elif is_written or not is_final or ledger_stat.st_mtime_ns > settled_ns:
            found.unsettled[run] = is_written
    return found


def _is_stale(
    index: RunIndex, ledger: os.stat_result, rows: Sequence[tuple[Any, ...]], *, is_written: bool
) -> bool:
    """Return whether a run must be read again."""
    if len(rows) != 1:
        return True
    ((_, ledger_bytes, ledger_mtime_ns, outcome),) = rows
    if _differs(index, ledger, ledger_bytes, ledger_mtime_ns):
        return True
    if index.is_postgresql and ledger.st_size < ledger_bytes:  # another machine has continued the run
        return False
    # A killed process writes no ending.
    return outcome in ("running", "waiting") and is_written != (outcome == "running")


def differs_from_row(index: RunIndex, home: Path, row: Mapping[str, Any]) -> bool:
    """Return whether the ledger of a run on this machine is not the one from which its row in `tasks` was made.

    The ledgers of runs that have not ended are compared at each query anyway.
    """
    if row["outcome"] in UNFINISHED_OUTCOMES:
        return False
    try:
        ledger = os.stat(f"{home}/{RUNS_FOLDER}/{row['run_id']}/{LEDGER_FILE}")  # noqa: PTH116
    except OSError:
        return index.is_beside_runs  # otherwise the run may be one of another machine
    return _differs(index, ledger, row["ledger_bytes"], row["ledger_mtime_ns"])


def _differs(index: RunIndex, ledger: os.stat_result, ledger_bytes: int, ledger_mtime_ns: int) -> bool:
    """Return whether a ledger is not the one that was read; in a shared database, whether it has more."""
    if index.is_postgresql:
        return ledger.st_size > ledger_bytes
    return (ledger.st_size, ledger.st_mtime_ns) != (ledger_bytes, ledger_mtime_ns)


def _list_names(home: Path) -> list[bytes]:
    try:
        return os.listdir(os.fsencode(home / RUNS_FOLDER))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []


def _checksum(names: Iterable[bytes]) -> int:
    """Return a number that hardly any other set of names has, and to which that of another name can be added."""
    return sum(map(zlib.crc32, names))


def _read_rows(index: RunIndex, runs: Collection[str], *, all_rows: bool = False) -> dict[str, list[Any]]:
    """Return the rows of some runs.

    Args:
        all_rows: Whether these are all runs of this machine. In a file beside them, rows of other runs are those of
            deleted runs; a shared database may have many more.
    """
    select = f"SELECT {ROW_COLUMNS} FROM tasks"
    found: list[tuple[Any, ...]] = []
    if all_rows and not index.is_postgresql:
        found = index.execute(select)
        if not index.is_beside_runs:
            found = [row for row in found if row[0] in runs]
    elif index.is_postgresql:
        found = index.execute(f"{select} WHERE run_id = ANY(:runs)", {"runs": list(runs)})
    else:
        for batch in batched(runs, MAX_PARAMETERS):
            parameters = {f"run{number}": run for number, run in enumerate(batch)}
            names = ", ".join(f":{name}" for name in parameters)
            found += index.execute(f"{select} WHERE run_id IN ({names})", parameters)
    rows: dict[str, list[Any]] = {}
    for run, *row in found:
        rows.setdefault(run, []).append(tuple(row))
    return rows


def _load_scan(index: RunIndex, home: Path) -> Scan | None:
    """Return what the database knows of a folder of state; `None` if it has never been compared."""
    found = index.execute(
        "SELECT log_offset, log_checksum, names_checksum, unsettled, compared_s FROM scanned_homes "
        "WHERE home = :home",
        {"home": _identify_home(home)},
    )
    for offset, checksum, names_checksum, unsettled, compared_s in found:
        return Scan(
            log=LogPosition(offset=offset, checksum=checksum),
            names_checksum=names_checksum,
            unsettled=json.loads(unsettled),
            compared_s=compared_s,
        )
    return None


def save_scan(index: RunIndex, home: Path, scan: Scan) -> None:
    """Remember how far the ledgers of a folder of state are in the database."""
    values = {
        "home": _identify_home(home),
        "log_offset": scan.log.offset,
        "log_checksum": scan.log.checksum,
        "names_checksum": scan.names_checksum,
        "unsettled": json.dumps(scan.unsettled),
        "compared_s": scan.compared_s,
    }
    updates = ", ".join(f"{name} = excluded.{name}" for name in values if name != "home")
    index.execute(
        f"INSERT INTO scanned_homes ({', '.join(values)}) VALUES ({', '.join(f':{name}' for name in values)}) "
        f"ON CONFLICT (home) DO UPDATE SET {updates}",
        values,
    )


def _identify_home(home: Path) -> str:
    """Return what a copy of a folder of state, on this machine or another one, does not have in common with it."""
    try:
        folder = os.stat(home / RUNS_FOLDER)  # noqa: PTH116
    except OSError:
        return f"{platform.node()} {home}"[:200]
    return f"{platform.node()} {folder.st_dev} {folder.st_ino}"[:200]


def batched(runs: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield lists of at most `size` runs."""
    remaining = iter(runs)
    while batch := list(islice(remaining, size)):
        yield batch
