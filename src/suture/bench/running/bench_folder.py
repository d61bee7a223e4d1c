"""The folder of a benchmark: its plan, its finished rows, and the run folders below it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from suture.bench.grading.hidden_checks import Grade
from suture.bench.problem import Problem
from suture.bench.rows import BenchmarkRow
from suture.bench.running.benchmark_plan import BenchmarkPlan
from suture.core.file_locks import lock_file
from suture.core.records import content_hash, decode_record, encode_record
from suture.core.safe_files import write_file_atomically
from suture.errors import StorageError, UsageError


class BenchFolder:
    """The files of a benchmark.

    Args:
        path: The folder. Runs are in `runs`, and new replies in `pool` by default.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def rows_path(self) -> Path:
        """One JSON line for each task, arm, model, cap and seed."""
        return self.path / "rows.jsonl"

    @property
    def exists(self) -> bool:
        """Whether the folder has a benchmark."""
        return (self.path / "plan.json").is_file()

    def plan(self) -> BenchmarkPlan:
        """Load the plan."""
        return decode_record(BenchmarkPlan, self._read("plan.json"))

    def write_plan(self, plan: BenchmarkPlan) -> None:
        """Save the plan; the benchmark keeps its id, or gets one."""
        benchmark_id = plan.id or (self.plan().id if self.exists else "") or secrets.token_hex(8)
        self._write("plan.json", encode_record(replace(plan, id=benchmark_id)))

    @property
    def id(self) -> str:
        """The id of the benchmark; for a plan without an id, one made from the folder's path."""
        return self.plan().id or content_hash({"folder": str(self.path.resolve())})[:16]

    def references(self) -> dict[str, Grade]:
        """Load the grades of the references: task hash -> grade."""
        if not (self.path / "references.json").is_file():
            return {}
        return {name: decode_record(Grade, grade) for name, grade in self._read("references.json").items()}

    def write_references(self, grades: Mapping[str, Grade]) -> None:
        """Save the grades of the references."""
        self._write("references.json", {name: encode_record(grade) for name, grade in grades.items()})

    def controls(self) -> list[tuple[str, str]]:
        """Load (data set, task) of each task on which the controls ran."""
        if not (self.path / "controls.json").is_file():
            return []
        return [(dataset, task) for dataset, task in self._read("controls.json")["tried"]]

    def write_controls(self, tasks: Sequence[tuple[str, str]]) -> None:
        """Save (data set, task) of each task on which the controls scored what they must."""
        self._write("controls.json", {"right": 1, "wrong": 0, "tried": list(tasks)})

    def rows(self) -> list[BenchmarkRow]:
        """Load the finished rows. A last line that a crash cut short is skipped."""
        if not self.rows_path.is_file():
            return []
        rows = []
        for number, line in enumerate(self.rows_path.read_bytes().split(b"\n")[:-1], 1):
            try:
                rows.append(decode_record(BenchmarkRow, json.loads(line)))
            except (ValueError, TypeError) as fault:
                line_name = f"line {number} of {str(self.rows_path)!r}"
                raise StorageError(f"{line_name} is not a benchmark row: {fault}") from fault
        return rows

    def write_rows(self, rows: list[BenchmarkRow]) -> None:
        """Replace all rows."""
        write_file_atomically(self.rows_path, b"".join(map(_line, rows)))

    def add_row(self, row: BenchmarkRow) -> None:
        """Append a row; it is on disk when this returns."""
        try:
            with self.rows_path.open("ab") as file:
                file.write(_line(row))
                file.flush()
                os.fsync(file.fileno())
        except OSError as fault:
            raise StorageError(
                f"{str(self.rows_path)!r} cannot be written: {fault.strerror}", remedy="free some disk space"
            ) from fault

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder against other processes; it is created if it does not exist."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("ab")
        except OSError as fault:
            raise StorageError(f"{str(self.path)!r} cannot be made: {fault.strerror}") from fault
        with lock:
            try:
                lock_file(lock)
            except BlockingIOError as fault:
                raise UsageError(
                    f"another process uses {str(self.path)!r}", remedy="wait for it to end"
                ) from fault
            yield

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        try:
            values: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError as fault:
            raise UsageError(
                f"there is no benchmark in {str(self.path)!r}", remedy="begin one: suture bench run"
            ) from fault
        except (OSError, ValueError) as fault:
            raise StorageError(f"{str(path)!r} cannot be read: {fault}") from fault
        return values

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        write_file_atomically(self.path / name, json.dumps(value, indent=1).encode("ascii"))


def require_same_tasks(
    folder: BenchFolder, problems: Mapping[tuple[str, str], Problem], rows: Sequence[BenchmarkRow]
) -> None:
    """Check that no task has changed since its row was written; rows with a fault are skipped.

    `problems` maps (data set, task) to the present task. Rows of other tasks are skipped too.
    """
    hashes = {key: problem.content_hash for key, problem in problems.items()}
    measured_hashes = {(row.dataset, row.problem, row.problem_hash) for row in rows if not row.fault}
    changed = sorted(
        {
            task
            for dataset, task, measured_hash in measured_hashes
            if hashes.get((dataset, task), measured_hash) != measured_hash
        }
    )
    if changed:
        raise UsageError(
            f"{', '.join(changed[:5])}{' and others' if len(changed) > 5 else ''}: not the task that was "
            f"measured in {str(folder.path)!r}",
            remedy="give it the set as it was then, or measure the changed one in a new folder",
        )


def _line(row: BenchmarkRow) -> bytes:
    return json.dumps(encode_record(row)).encode("ascii") + b"\n"
