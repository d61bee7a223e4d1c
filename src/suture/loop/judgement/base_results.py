"""What the result of the tests of a base depends on, so that it need not be found out again for the same base."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from suture.core.codec import encode_record
from suture.core.records import Task, content_hash
from suture.core.settings import SandboxSettings, Settings
from suture.judge import Suite, find_protected_files
from suture.judge.runners.pytest_runner import load_plugin
from suture.judge.runners.recorded_runs import BaseRunRecord
from suture.project.languages import Interpreter, is_pytest_command
from suture.project.mixed_files import combine_code_and_tests, find_mixed_files
from suture.project.workspace import decode_text, is_test_file, overlay_candidate
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

    There is none for commands other than pytest, and none where code in the sandbox could write it.

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


@dataclass(frozen=True)
class ProposedChange:
    """Two states of a project, path -> content, and the differences between them."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """The paths that are new, changed or removed, sorted."""
        paths = {*self.before, *self.after}
        return tuple(sorted(path for path in paths if self.before.get(path) != self.after.get(path)))

    @cached_property
    def mixed(self) -> frozenset[str]:
        """The changed files that hold code together with its tests, before and after the change."""
        mixed = find_mixed_files(self.before) & find_mixed_files(self.after)
        return mixed & {*self.changed}

    @property
    def removed(self) -> tuple[str, ...]:
        """The paths that no longer exist."""
        return tuple(path for path in self.changed if path not in self.after)

    @property
    def test_files(self) -> tuple[str, ...]:
        """The changed files that are tests, or serve only tests."""
        return tuple(path for path in self.changed if is_test_file(path) or path in self.mixed)

    def old_text(self, path: str) -> str:
        """Return a file before the change; empty if it did not exist."""
        return decode_text(self.before.get(path, b""))

    def new_text(self, path: str) -> str:
        """Return a file after the change; empty if it no longer exists."""
        return decode_text(self.after.get(path, b""))

    def find_code(self, suite: Suite) -> dict[str, str]:
        """Return the changed files that a candidate may write, path -> text; in mixed files with the old tests.

        Args:
            suite: Says which files decide: tests, their data and configuration. Binary files count as data.
        """
        texts = {
            path: self.new_text(path)
            for path in self.changed
            if path in self.after and b"\0" not in self.after[path]
        }
        old = {path: self.old_text(path) for path in self.mixed}
        texts |= {path: combine_code_and_tests(texts[path], text) for path, text in old.items()}
        texts = {path: text for path, text in texts.items() if text != old.get(path)}
        protected = set(find_protected_files(texts, suite))
        return {path: text for path, text in texts.items() if path not in protected}

    def with_new_tests(self, code: Mapping[str, str]) -> dict[str, bytes]:
        """Return the old code with everything else of the change: its tests, data and configuration.

        Args:
            code: The changed code, as `find_code` returns it.
        """
        files = {path: content for path, content in self.before.items() if path in self.after or path in code}
        # A removed file of code is still there, because the old code may need it.
        files |= {path: self.before[path] for path in self.removed if not is_test_file(path)}
        files |= {path: content for path, content in self.after.items() if path not in code}
        for path in self.mixed.intersection(code):
            text = combine_code_and_tests(self.old_text(path), self.new_text(path))
            files[path] = overlay_candidate(self.before, {path: text})[path]
        return files
