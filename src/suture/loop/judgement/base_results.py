"""What the result of the tests of a base depends on, so that it need not be found out again for the same base."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from suture.core.codec import encode_record
from suture.core.records import Task, content_hash
from suture.core.settings import SandboxSettings, Settings
from suture.judge.runners.pytest_runner import load_plugin
from suture.judge.runners.recorded_runs import BaseRunRecord
from suture.project.languages import Interpreter, is_pytest_command
from suture.sandbox import Sandbox, mounts_for_interpreter

RECORDED_RUNS_FOLDER = "judge"
"""Folder of the cache for the results of the tests of a base."""


def find_recorded_runs(settings: Settings) -> Path | None:
    """Return the folder in which the results of the tests of bases are kept; `None` if the settings keep none."""
    return settings.paths.cache / RECORDED_RUNS_FOLDER if settings.judge.reuse_base else None


async def find_recorded_run(
    folder: Path, task: Task, sandbox: Sandbox, settings: SandboxSettings, interpreter: Interpreter
) -> BaseRunRecord | None:
    """Return the place of the result of a base's tests.

    There is none for other commands than pytest, and where code in the sandbox could write it.

    Args:
        folder: Where results are kept, outside of the sandbox.
        task: The base and its test command.

    Raises:
        SandboxError: No sandbox can be built.
    """
    if not is_pytest_command(task.test_command):
        return None
    capabilities = await sandbox.capabilities()
    if not capabilities.meets_level("namespace"):
        return None
    key = content_hash(
        [
            version("suture"),
            {path: hash_bytes(content) for path, content in load_plugin().items()},
            capabilities.identity,
            settings.model_dump(mode="json"),
            encode_record(interpreter),
            {path: hash_bytes(content) for path, content in task.files.items()},
            encode_record(replace(task, files={}, earlier_versions=())),
            await asyncio.to_thread(hash_environment, interpreter),
        ]
    )
    return BaseRunRecord(folder=folder, key=key)


def hash_bytes(content: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def hash_environment(interpreter: Interpreter) -> str:
    """Return a digest of the files that the sandbox shows of an interpreter and its packages.

    Of each file, the size and the times of its last changes count. The time of the last change of the inode is set by
    the system alone.
    """
    digest = hashlib.sha256()
    for source in sorted({mount.source for mount in mounts_for_interpreter(interpreter)}):
        for line in sorted(_describe_files(source)):
            digest.update(line)
    return digest.hexdigest()


def _describe_files(root: str) -> Iterator[bytes]:
    waiting = [root]
    while waiting:
        path = waiting.pop()
        try:
            entries = list(os.scandir(path))
        except NotADirectoryError:
            yield _describe(path, Path(path).stat())
            continue
        except OSError:  # removed meanwhile, or unreadable for the tests too
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                yield _describe(entry.path, entry.stat(follow_symlinks=False))


def _describe(path: str, facts: os.stat_result) -> bytes:
    parts = (os.fsencode(path), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)
    return b"%b %d %d %d %d\n" % parts
