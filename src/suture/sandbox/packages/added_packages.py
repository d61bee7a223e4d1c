"""The packages that candidates add to an existing project. Each set is fetched once and cached."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from suture.core.records import content_hash, decode_record, encode_record
from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import PrerequisiteError, StorageError
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.safety import find_requested_packages, find_version_bounds, normalise_package_name
from suture.sandbox.packages.additions.adder import AddedSet, Files, PackageAdder
from suture.sandbox.packages.additions.go_adder import GoAdder
from suture.sandbox.packages.additions.node_adder import NodeAdder
from suture.sandbox.packages.additions.python_adder import PythonAdder
from suture.sandbox.packages.cache_eviction import evict_unused_sets, mark_used
from suture.sandbox.packages.installer import InstalledPackages, PackagesRefused, WorkFolder
from suture.sandbox.packages.package_sets import INSTALLERS, PackageSets, require_within

ADDERS: Mapping[str, PackageAdder] = {"pip": PythonAdder(), "npm": NodeAdder(), "go": GoAdder()}
"""Keys are values of `LanguageFacts.package_client`."""
RECORD_NAME = "grown.json"
MAX_RECORD_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class AddedPackages(PackageSets):
    """The packages that candidates request in addition to what a project has.

    A manifest of a candidate is accepted only as `normalize_requested_files` writes it, or as it was
    completed here. So nothing else of it changes, and no candidate can influence what decides the verdict.

    Attributes:
        base: The project's files.
    """

    base: Files

    @property
    def _adder(self) -> PackageAdder:
        return ADDERS[LANGUAGES[self.language].package_client]

    def normalize_requested_files(self, written: Mapping[str, str]) -> dict[str, str]:
        """Return a candidate's files with its requested packages written into the project's own manifest.

        Args:
            written: The candidate's files, path -> text. Not trusted.

        Raises:
            PackagesRefused: It requests something that is not installed.
        """
        new = self._adder.requested(self.base, written)
        rest = {
            path: text for path, text in written.items() if path not in self._adder.request_files(self.base)
        }
        if not new:
            return dict(written)
        return {**rest, self._adder.manifest(self.base): self._adder.write_manifest(self.base, new)}

    async def install_for(self, files: Files, interpreter: Interpreter) -> InstalledPackages | None:
        """Install the packages that a project's files add; `None` if they add none.

        Args:
            files: The project with a candidate applied.
            interpreter: The interpreter that it runs on, with its existing packages.

        Raises:
            PackagesRefused: They cannot be installed.
            PrerequisiteError: The index cannot be reached, or its client is missing.
            StorageError: The cache cannot be written.
        """
        new = self._requested_in(files)
        if not new:
            return None
        async with self._lock:
            if new not in self._installed_sets:
                self._installed_sets[new] = await self._install(new, interpreter)
                self.on_installed(self._installed_sets[new])
        return self._installed_sets[new]

    def wrote_file(self, path: str, text: str) -> bool:
        """Return whether a file was written here, and not by the candidate."""
        return any(installed.files.get(path) == text for installed in self._installed_sets.values())

    def allows_file(self, path: str, files: Files, interpreter: Interpreter) -> bool:
        """Return whether a candidate's file is a manifest or a lock exactly as it is written here.

        Args:
            path: The file.
            files: The project with the candidate applied.
            interpreter: The interpreter that it runs on.
        """
        text = files.get(path, b"").decode("utf-8", "replace")
        try:
            new = self._requested_in(files)
            if not new:
                return False
            if path == self._adder.manifest(self.base) and text == self._adder.write_manifest(self.base, new):
                return True
            installed = self._installed_sets.get(new)
            added = (
                self._load_cached(self._cache_folder(new, interpreter), interpreter)
                if installed is None
                else None
            )
        except PackagesRefused:
            return False
        known = installed.files if installed is not None else added.files if added is not None else {}
        return known.get(path) == text

    def follow_up_notes(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return what the user must do after applying a candidate's files, as sentences."""
        manifest = self._adder.manifest(self.base)
        if manifest not in files:
            return ()
        locks = ", ".join(self._adder.outdated_locks(self.base))
        stale = f", and update {locks}" if locks else ""
        return (f"{manifest} requires packages that the project's environment lacks: install them{stale}",)

    def _requested_in(self, files: Files) -> tuple[str, ...]:
        changed = (
            path for path in self._adder.request_files(self.base) if files.get(path) != self.base.get(path)
        )
        written = {path: files.get(path, b"").decode("utf-8", "replace") for path in changed}
        return self._adder.requested(self.base, written) if written else ()

    def _cache_folder(self, new: tuple[str, ...], interpreter: Interpreter) -> Path:
        installer = INSTALLERS[LANGUAGES[self.language].package_client]
        python = ".".join(interpreter.version.split(".")[:2])
        names = (*self._adder.request_files(self.base), self._adder.manifest(self.base), installer.lock)
        own_files = {name: self.base[name].hex() for name in names if name in self.base}
        return self.cache / "packages" / content_hash([self.language, python, own_files, list(new)])

    def _load_cached(self, place: Path, interpreter: Interpreter) -> AddedSet | None:
        """Return what is cached in a place, if it still fits the environment."""
        content = read_regular_file(place / RECORD_NAME, MAX_RECORD_BYTES)
        if content is None:
            return None
        added = decode_record(AddedSet, json.loads(content))
        return added if self._adder.is_still_valid(added.beside, interpreter) else None

    async def _install(self, new: tuple[str, ...], interpreter: Interpreter) -> InstalledPackages:
        place = self._cache_folder(new, interpreter)
        mark_used(place)
        added = self._load_cached(place, interpreter)
        if added is None:
            if not self.may_fetch:
                raise PrerequisiteError(
                    f"packages are needed, are not cached, and must not be fetched: {', '.join(new)}",
                    remedy="fetch them in a run with --approve-deps ask or allowlist",
                )
            try:
                added = await self._fetch(new, place, interpreter)
            except OSError as fault:
                raise StorageError(
                    f"packages cannot be stored in {str(self.cache)!r}: {fault.strerror}"
                ) from fault
        return InstalledPackages(
            folder=place / self._adder.folder, path="", lock="", files=added.files, names=added.names
        )

    async def _fetch(self, new: tuple[str, ...], place: Path, interpreter: Interpreter) -> AddedSet:
        (self.cache / "packages").mkdir(parents=True, exist_ok=True)
        bounds = self._version_bounds(new)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=self.cache / "packages") as folder:
            first, second = (
                self._create_work_folder(Path(folder) / name, interpreter, bounds) for name in "ab"
            )
            added = await self._adder.fetch(self.base, new, (first, second), interpreter)
            require_within(dict(map(_split_version, added.names)), bounds)
            if not stat.S_ISDIR((second.folder / self._adder.folder).lstat().st_mode):
                raise PackagesRefused(f"the client left no folder {self._adder.folder}")
            await asyncio.to_thread(_store_set, added, second.folder, place)
        await asyncio.to_thread(evict_unused_sets, place.parent)
        return added

    def _create_work_folder(
        self, folder: Path, interpreter: Interpreter, bounds: Mapping[str, str]
    ) -> WorkFolder:
        folder.mkdir()
        python = ".".join(interpreter.version.split(".")[:2])
        return WorkFolder(
            folder=folder, python=python, sandboxed=self.sandboxed, hosts=self.hosts, bounds=bounds
        )

    def _version_bounds(self, new: tuple[str, ...]) -> Mapping[str, str]:
        """Return the version bounds of the allow list. What the project already requires is its author's
        decision.
        """
        manifest = self._adder.manifest(self.base)
        own_files = self.base.get(manifest, b"").decode("utf-8", "replace")
        known = {
            name
            for one in find_requested_packages(manifest, own_files)
            for name in (one.name, normalise_package_name(one.name))
        }
        found = find_version_bounds(manifest, self._adder.write_manifest(self.base, new), self.allowed)
        return {name: versions for name, versions in found.items() if name not in known}


def _store_set(added: AddedSet, finished: Path, place: Path) -> None:
    """Move a finished set into the cache, completely or not at all; a set for another environment is
    replaced.
    """
    write_file_atomically(finished / RECORD_NAME, json.dumps(encode_record(added)).encode())
    shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):  # another run was faster
        finished.rename(place)
    if not place.is_dir():
        raise OSError(errno.ENOENT, "it was not kept")


def _split_version(name: str) -> tuple[str, str]:
    """Split `name==1.0` or `name@1.0` into name and version."""
    separator = "==" if "==" in name else "@"
    return name.rpartition(separator)[0].lower(), name.rpartition(separator)[2]
