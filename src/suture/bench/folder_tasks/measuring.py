"""Measure the tasks of a folder with one model: each row is on disk before the next task begins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from suture.bench.folder_tasks.folder_rows import FolderRow, find_group
from suture.bench.folder_tasks.folder_task import AttemptTools, FolderTask, UnusableTask
from suture.bench.folder_tasks.harbor import load_harbor_tasks
from suture.bench.folder_tasks.polyglot import load_polyglot_tasks
from suture.bench.running.benchmark import for_each
from suture.bench.running.evaluation import ABORTING_ERRORS
from suture.core.file_locks import lock_file
from suture.core.records import content_hash, decode_record, encode_record
from suture.core.safe_files import write_file_atomically
from suture.core.settings import Settings
from suture.errors import StorageError, SutureError, UsageError
from suture.models import Model
from suture.sandbox import open_sandbox

Task = TypeVar("Task", bound=FolderTask)
ROWS = "task_rows.jsonl"
"""The file of a benchmark's folder that has one JSON line for each task and model."""
SESSIONS = "task_sessions.jsonl"
"""The file that has one JSON line for each command that measured a part: machine, versions, date, command."""
COMPARED_SETTINGS: Mapping[str, bool | set[str]] = {
    "model": {"temperature", "max_tokens", "context_tokens", "seed", "quantization", "profile", "profiles"},
    "sandbox": {"check_timeout_s", "test_timeout_s", "memory_mb", "total_memory_mb", "processes", "disk_mb"},
    "budget": True,
    "loop": True,
    "repair": True,
    "safety": True,
    "memory": True,
}
"""Settings on which a result depends. They are the same in all rows, so that a table compares nothing but models."""


def load_folder_tasks(folder: Path) -> tuple[FolderTask, ...]:
    """Return the tasks in a folder, by id: polyglot exercises, or tasks in Harbor's format.

    Raises:
        UsageError: There is no task, or one cannot be read.
    """
    tasks: tuple[FolderTask, ...] = (*load_polyglot_tasks(folder), *load_harbor_tasks(folder))
    if not tasks:
        raise UsageError(
            f"there is no task in {str(folder)!r}",
            remedy="name a folder with LANGUAGE/exercises/practice/NAME, or with tasks that have a task.toml",
        )
    return tasks


def take_first(tasks: Sequence[Task], number: int | None) -> list[Task]:
    """Return the first tasks of each group, such as a language of polyglot exercises; all if `number` is `None`."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(find_group(task.id), []).append(task)
    return [task for group in groups.values() for task in group[:number]]


def read_folder_rows(folder: Path) -> list[FolderRow]:
    """Return the finished rows of a benchmark's folder. A last line that a crash cut short is skipped."""
    path = folder / ROWS
    if not path.is_file():
        return []
    try:
        return [
            decode_record(FolderRow, json.loads(line)) for line in path.read_bytes().split(b"\n")[:-1] if line
        ]
    except (ValueError, TypeError) as fault:
        raise StorageError(f"{str(path)!r} is damaged: {fault}") from fault


async def measure_folder(
    tasks: Sequence[FolderTask],
    folder: Path,
    settings: Settings,
    model: Model,
    *,
    environment: Mapping[str, str],
    parallel: int = 1,
    on_row: Callable[[FolderRow], None] = lambda row: None,
) -> list[FolderRow]:
    """Measure what is not measured yet, and return all rows of the benchmark.

    Rows with a fault, and rows of tasks that have changed, are measured again.

    Args:
        folder: The benchmark's folder, which is created if needed. Run folders are below it.
        environment: The machine, versions, date and command, which are stored with the rows.
        parallel: Maximum number of tasks that are attempted at the same time.

    Raises:
        UsageError: Another process uses the folder, or its rows were measured with other settings.
        PrerequisiteError: A sandbox, a model or a key is missing.
        StorageError: The folder cannot be written.
        Cancelled: The user stopped it; the next call continues.
    """
    settings = _use_folder(folder, settings)
    with _lock_folder(folder):
        rows = _keep_finished_rows(folder, tasks)
        settings_hash = hash_settings(settings)
        if any(row.settings_hash != settings_hash for row in rows):
            raise UsageError(
                f"the rows in {str(folder)!r} were measured with other settings or another version of Suture",
                remedy=f"name another folder, or use the settings of the last command in {SESSIONS}",
            )
        _append_line(folder / SESSIONS, dict(environment))
        finished = {row.task for row in rows if row.model == model.name}
        sandbox, judge = (
            open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache) for _ in range(2)
        )
        tools = AttemptTools(model=model, settings=settings, sandbox=sandbox, judge=judge)

        async def measure(task: FolderTask) -> None:
            row = await _measure_task(task, tools, settings_hash)
            _append_line(folder / ROWS, encode_record(row))
            rows.append(row)
            on_row(row)

        try:
            await for_each([task for task in tasks if task.id not in finished], measure, parallel=parallel)
        finally:
            await sandbox.close()
            await judge.close()
    return rows


def _use_folder(folder: Path, settings: Settings) -> Settings:
    """Create the benchmark's folder, and return settings whose run folders are below it."""
    folder.mkdir(parents=True, exist_ok=True)
    home = settings.paths.model_copy(update={"home": folder.resolve()})
    return settings.model_copy(update={"paths": home})


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("ab") as lock:
        try:
            lock_file(lock)
        except BlockingIOError as fault:
            raise UsageError(f"another process uses {str(folder)!r}", remedy="wait for it to end") from fault
        yield


def _keep_finished_rows(folder: Path, tasks: Sequence[FolderTask]) -> list[FolderRow]:
    """Return the finished rows. Rows with a fault, and rows of tasks that have changed, are removed."""
    hashes = {task.id: task.content_hash for task in tasks}
    rows = [
        row
        for row in read_folder_rows(folder)
        if not row.fault and hashes.get(row.task, row.task_hash) == row.task_hash
    ]
    lines = (json.dumps(encode_record(row)) + "\n" for row in rows)
    write_file_atomically(folder / ROWS, "".join(lines).encode("ascii"))
    return rows


def _append_line(path: Path, value: object) -> None:
    with path.open("a", encoding="ascii") as file:
        file.write(json.dumps(value) + "\n")
        file.flush()
        os.fsync(file.fileno())


def hash_settings(settings: Settings) -> str:
    """Return the hash of the settings and the version on which a result depends, without the model's name."""
    return content_hash(
        [version("suture"), settings.model_dump(mode="json", include=dict(COMPARED_SETTINGS))]
    )


async def _measure_task(task: FolderTask, tools: AttemptTools, settings_hash: str) -> FolderRow:
    row = FolderRow(
        task=task.id,
        task_hash=task.content_hash,
        settings_hash=settings_hash,
        model=tools.model.name,
        max_attempts=task.max_attempts,
    )
    try:
        return replace(row, attempts=await task.measure(tools))
    except UnusableTask as fault:
        return replace(row, fault=str(fault))
    except ABORTING_ERRORS:
        raise
    except SutureError as fault:
        return replace(row, fault=f"{type(fault).__name__}: {fault}")
