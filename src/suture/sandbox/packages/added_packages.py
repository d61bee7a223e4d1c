"""The packages that candidates add to a project that is there: each set is fetched once, and kept."""

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
from suture.sandbox.packages.cache_eviction import make_room, note_use
from suture.sandbox.packages.installer import InstalledPackages, PackagesRefused, Place
from suture.sandbox.packages.package_sets import INSTALLERS, PackageSets, require_within

ADDERS: Mapping[str, PackageAdder] = {"pip": PythonAdder(), "npm": NodeAdder(), "go": GoAdder()}
"""By what `LanguageFacts.package_client` names."""
NOTE = "grown.json"
NOTE_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class AddedPackages(PackageSets):
    """What candidates ask for beside what a project has.

    A manifest of theirs is taken only as `normalize_requested_files` writes it down, or as it was
    completed here; so nothing else of it changes, and none of them has a say in what decides.

    Attributes:
        base: The project's files.
    """

    base: Files

    @property
    def _grower(self) -> PackageAdder:
        return ADDERS[LANGUAGES[self.language].package_client]

    def normalize_requested_files(self, written: Mapping[str, str]) -> dict[str, str]:
        """Files as a candidate may hand them in: what it asks for stands in the project's own manifest.

        Args:
            written: What was written, path -> text. Not trusted.

        Raises:
            PackagesRefused: It asks for what is not installed.
        """
        new = self._grower.asked(self.base, written)
        rest = {path: text for path, text in written.items() if path not in self._grower.wishes(self.base)}
        if not new:
            return dict(written)
        return {**rest, self._grower.manifest(self.base): self._grower.written_down(self.base, new)}

    async def install_for(self, files: Files, interpreter: Interpreter) -> InstalledPackages | None:
        """The packages that a project's files add, ready; `None` where they add none.

        Args:
            files: The project with a candidate in it.
            interpreter: What it runs on, with the packages that are there.

        Raises:
            PackagesRefused: They cannot be had.
            PrerequisiteError: The index cannot be reached, or its client is not there.
            StorageError: The cache cannot be written.
        """
        new = self._new_in(files)
        if not new:
            return None
        async with self._turn:
            if new not in self._kept:
                self._kept[new] = await self._ready(new, interpreter)
                self.on_installed(self._kept[new])
        return self._kept[new]

    def wrote_file(self, path: str, text: str) -> bool:
        """Whether a file is one that was made here, and not by who asked for packages."""
        return any(installed.files.get(path) == text for installed in self._kept.values())

    def allows_file(self, path: str, files: Files, interpreter: Interpreter) -> bool:
        """Whether a file of a candidate is a manifest or a lock as it is written down here.

        Args:
            path: The file.
            files: The project with the candidate in it.
            interpreter: What it runs on.
        """
        text = files.get(path, b"").decode("utf-8", "replace")
        try:
            new = self._new_in(files)
            if not new:
                return False
            if path == self._grower.manifest(self.base) and text == self._grower.written_down(self.base, new):
                return True
            kept = self._kept.get(new)
            grown = self._read(self._place(new, interpreter), interpreter) if kept is None else None
        except PackagesRefused:
            return False
        known = kept.files if kept is not None else grown.files if grown is not None else {}
        return known.get(path) == text

    def follow_up_notes(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """What whoever takes over a candidate's files has to do himself, in words."""
        manifest = self._grower.manifest(self.base)
        if manifest not in files:
            return ()
        locks = ", ".join(self._grower.untouched(self.base))
        stale = f"; {locks} is not brought up to date" if locks else ""
        return (f"{manifest} asks for more than the project's own environment has: install it there{stale}",)

    def _new_in(self, files: Files) -> tuple[str, ...]:
        changed = (path for path in self._grower.wishes(self.base) if files.get(path) != self.base.get(path))
        written = {path: files.get(path, b"").decode("utf-8", "replace") for path in changed}
        return self._grower.asked(self.base, written) if written else ()

    def _place(self, new: tuple[str, ...], interpreter: Interpreter) -> Path:
        installer = INSTALLERS[LANGUAGES[self.language].package_client]
        python = ".".join(interpreter.version.split(".")[:2])
        names = (*self._grower.wishes(self.base), self._grower.manifest(self.base), installer.lock)
        own = {name: self.base[name].hex() for name in names if name in self.base}
        return self.cache / "packages" / content_hash([self.language, python, own, list(new)])

    def _read(self, place: Path, interpreter: Interpreter) -> AddedSet | None:
        """What is kept in a place, where it still fits the environment."""
        content = read_regular_file(place / NOTE, NOTE_BYTES)
        if content is None:
            return None
        grown = decode_record(AddedSet, json.loads(content))
        return grown if self._grower.holds(grown.beside, interpreter) else None

    async def _ready(self, new: tuple[str, ...], interpreter: Interpreter) -> InstalledPackages:
        place = self._place(new, interpreter)
        note_use(place)
        grown = self._read(place, interpreter)
        if grown is None:
            if not self.may_fetch:
                raise PrerequisiteError(
                    f"packages are needed, not kept here, and none may be fetched: {', '.join(new)}",
                    remedy="have them fetched by a run with --approve-deps ask or allowlist",
                )
            try:
                grown = await self._fetched(new, place, interpreter)
            except OSError as fault:
                raise StorageError(
                    f"packages cannot be kept in {str(self.cache)!r}: {fault.strerror}"
                ) from fault
        return InstalledPackages(
            folder=place / self._grower.folder, path="", lock="", files=grown.files, names=grown.names
        )

    async def _fetched(self, new: tuple[str, ...], place: Path, interpreter: Interpreter) -> AddedSet:
        (self.cache / "packages").mkdir(parents=True, exist_ok=True)
        bounds = self._bounds(new)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=self.cache / "packages") as folder:
            first, second = (self._new_place(Path(folder) / name, interpreter, bounds) for name in "ab")
            grown = await self._grower.fetch(self.base, new, (first, second), interpreter)
            require_within(dict(map(_parted, grown.names)), bounds)
            if not stat.S_ISDIR((second.folder / self._grower.folder).lstat().st_mode):
                raise PackagesRefused(f"the client left no folder {self._grower.folder}")
            await asyncio.to_thread(_keep, grown, second.folder, place)
        await asyncio.to_thread(make_room, place.parent)
        return grown

    def _new_place(self, folder: Path, interpreter: Interpreter, bounds: Mapping[str, str]) -> Place:
        folder.mkdir()
        python = ".".join(interpreter.version.split(".")[:2])
        return Place(folder=folder, python=python, walled=self.walled, hosts=self.hosts, bounds=bounds)

    def _bounds(self, new: tuple[str, ...]) -> Mapping[str, str]:
        """The versions of the list; what the project asks for already was its author's to say."""
        manifest = self._grower.manifest(self.base)
        own = self.base.get(manifest, b"").decode("utf-8", "replace")
        known = {
            name
            for one in find_requested_packages(manifest, own)
            for name in (one.name, normalise_package_name(one.name))
        }
        found = find_version_bounds(manifest, self._grower.written_down(self.base, new), self.allowed)
        return {name: versions for name, versions in found.items() if name not in known}


def _keep(grown: AddedSet, made: Path, place: Path) -> None:
    """Whole, or not there; what was kept for another environment makes room."""
    write_file_atomically(made / NOTE, json.dumps(encode_record(grown)).encode())
    shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):  # another run was quicker
        made.rename(place)
    if not place.is_dir():
        raise OSError(errno.ENOENT, "it was not kept")


def _parted(name: str) -> tuple[str, str]:
    """Name and version, of `name==1.0` and of `name@1.0`."""
    joint = "==" if "==" in name else "@"
    return name.rpartition(joint)[0].lower(), name.rpartition(joint)[2]
