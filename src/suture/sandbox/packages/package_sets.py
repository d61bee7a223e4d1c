"""The packages of one run's candidates: each set is fetched once, and kept by its lock's hash."""

from __future__ import annotations

import asyncio
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from suture.core.records import Language, content_hash
from suture.errors import PrerequisiteError, StorageError
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.safety import Allowed, find_version_bounds, is_version_allowed
from suture.sandbox.packages.cache_eviction import make_room, note_use
from suture.sandbox.packages.go_installer import Go
from suture.sandbox.packages.installer import FETCHED, InstalledPackages, Installer, PackagesRefused, Place
from suture.sandbox.packages.npm_installer import Npm
from suture.sandbox.packages.pip_installer import Pip

NODE_MODULES = "/node_modules"
"""Behind the wall: node looks for packages in every folder above a file, up to the root."""
INSTALLERS: Mapping[str, Installer] = {"pip": Pip(), "npm": Npm(), "go": Go()}
"""By what `LanguageFacts.package_client` names."""


def manifest_name_for(language: Language) -> str:
    """The file in which a new project asks for packages; empty where none are installed."""
    installer = INSTALLERS.get(LANGUAGES[language].package_client)
    return installer.manifest if installer else ""


def is_lock_path(path: str) -> bool:
    """Whether a path is where we lay a lock."""
    return path in {installer.lock for installer in INSTALLERS.values()}


def _manifest(files: Mapping[str, bytes], name: str) -> bytes:
    """The manifest in the root, or the only one: small models lay it beside the code."""
    found = [content for path, content in files.items() if path.endswith(f"/{name}")]
    return files.get(name, found[0] if len(found) == 1 else b"")


def ignore_installed(installed: InstalledPackages) -> None:
    """Take notice of an installation where nobody asked to be told."""


@dataclass(frozen=True, kw_only=True)
class PackageSets:
    """Sets of packages of one project: each is fetched once, and kept.

    Attributes:
        language: The project's.
        cache: Suture's cache, where they are kept.
        may_fetch: Whether what is not kept is fetched; a verification fetches nothing.
        walled: Whether it is fetched behind a wall, with the index alone in reach.
        hosts: Servers in reach besides.
        allowed: What is allowed without anybody's approval; what is resolved keeps to its versions.
        on_installed: Called with each set, once.
    """

    language: Language
    cache: Path
    may_fetch: bool = True
    walled: bool = True
    hosts: tuple[str, ...] = ()
    allowed: Allowed = field(default_factory=dict)
    on_installed: Callable[[InstalledPackages], None] = ignore_installed
    _kept: dict[tuple[str, ...], InstalledPackages] = field(default_factory=dict, init=False)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)


@dataclass(frozen=True, kw_only=True)
class NewProjectPackages(PackageSets):
    """What the candidates of a new project ask for."""

    _laid: set[tuple[str, str]] = field(default_factory=set, init=False)

    async def install_for(
        self, files: Mapping[str, bytes], interpreter: Interpreter
    ) -> InstalledPackages | None:
        """The packages that a project's files ask for, ready; `None` where they ask for none.

        Args:
            files: The project. Its lock counts where it is one that we have made.
            interpreter: The Python that will import them.

        Raises:
            PackagesRefused: They cannot be had.
            PrerequisiteError: The index cannot be reached, or its client is not there.
            StorageError: The cache cannot be written.
        """
        installer = INSTALLERS.get(LANGUAGES[self.language].package_client)
        if installer is None:
            return None
        manifest = _manifest(files, installer.manifest).decode("utf-8", "replace")
        wanted = installer.wanted(manifest)
        if not wanted:
            installer.laid(manifest, "")  # nothing may only seem not to be asked for
            return None
        bounds = find_version_bounds(installer.manifest, manifest, self.allowed)
        lock = files.get(installer.lock, b"").decode("utf-8", "replace")
        python = ".".join(interpreter.version.split(".")[:2])
        async with self._turn:
            key = (*wanted, lock)
            if key not in self._kept:
                ready = await self._ready(installer, wanted, lock, python, bounds)
                if all(ready.lock != other.lock for other in self._kept.values()):
                    self.on_installed(ready)
                self._kept[key] = ready
            found = self._kept[key]
        found = replace(found, files=installer.laid(manifest, found.lock))
        self._laid.update(found.files.items())
        return found

    def wrote_file(self, path: str, text: str) -> bool:
        """Whether a file is one that was made here, and not by who asked for packages."""
        return (path, text) in self._laid

    def allows_file(self, path: str, files: Mapping[str, bytes], interpreter: Interpreter) -> bool:
        """Whether a file of a candidate is a lock that was made here for just what it asks for."""
        return is_lock_path(path) and self.is_known_lock(
            files.get(path, b"").decode("utf-8", "replace"), files, interpreter
        )

    def is_known_lock(self, lock: str, files: Mapping[str, bytes], interpreter: Interpreter) -> bool:
        """Whether a lock is one of ours: what it names was fetched for just what these files ask for."""
        python = ".".join(interpreter.version.split(".")[:2])
        installer = INSTALLERS.get(LANGUAGES[self.language].package_client)
        if installer is None:
            return False
        try:
            wanted = installer.wanted(_manifest(files, installer.manifest).decode("utf-8", "replace"))
        except PackagesRefused:
            return False
        return self._place(wanted, lock, python).is_dir()

    def _place(self, wanted: tuple[str, ...], lock: str, python: str) -> Path:
        digest = content_hash([self.language, python, list(wanted), lock])
        return self.cache / "packages" / digest

    async def _ready(
        self,
        installer: Installer,
        wanted: tuple[str, ...],
        lock: str,
        python: str,
        bounds: Mapping[str, str],
    ) -> InstalledPackages:
        place = self._place(wanted, lock, python)
        note_use(place)
        if not (lock and place.is_dir()):
            if not self.may_fetch:
                raise PrerequisiteError(
                    f"packages are needed, not kept here, and none may be fetched: {', '.join(wanted)}",
                    remedy="have them fetched by a run with --approve-deps ask or allowlist",
                )
            try:
                lock, place = await self._fetched(installer, wanted, python, bounds)
            except OSError as fault:
                raise StorageError(
                    f"packages cannot be kept in {str(self.cache)!r}: {fault.strerror}"
                ) from fault
        if self.may_fetch:
            require_within(installer.versions(lock), bounds)
        return InstalledPackages(
            folder=place / installer.folder,
            path=installer.lock,
            lock=lock,
            files={installer.lock: lock},
            names=installer.names(lock, place),
        )

    async def _fetched(
        self, installer: Installer, wanted: tuple[str, ...], python: str, bounds: Mapping[str, str]
    ) -> tuple[str, Path]:
        (self.cache / "packages").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=self.cache / "packages") as folder:
            # Two folders: what a client left in the first is not where we write for the second.
            first, second = (self._new(Path(folder) / name, python, bounds) for name in ("resolved", "made"))
            lock = await installer.resolve(wanted, first)
            require_within(installer.versions(lock), bounds)
            place = self._place(wanted, lock, python)
            if not place.is_dir():
                with suppress(FileNotFoundError):
                    (first.folder / FETCHED).rename(second.folder / FETCHED)
                await installer.install(wanted, lock, second)
                shutil.rmtree(second.folder / FETCHED, ignore_errors=True)
                if not stat.S_ISDIR((second.folder / installer.folder).lstat().st_mode):
                    raise PackagesRefused(f"the client left no folder {installer.folder}")
                try:
                    second.folder.rename(place)  # whole, or not there
                except OSError:
                    if not place.is_dir():  # no other run was quicker
                        raise
        note_use(place)
        await asyncio.to_thread(make_room, place.parent)
        return lock, place

    def _new(self, folder: Path, python: str, bounds: Mapping[str, str]) -> Place:
        folder.mkdir()
        return Place(folder=folder, python=python, walled=self.walled, hosts=self.hosts, bounds=bounds)


def require_within(versions: Mapping[str, str], bounds: Mapping[str, str]) -> None:
    """See that what is resolved is what the list allows; pip has been told, others have no word for it.

    Raises:
        PackagesRefused: A version is not.
    """
    for name, version in versions.items():
        if not is_version_allowed(version, bounds.get(name.lower(), "")):
            raise PackagesRefused(
                f"{name} {version} would be fetched, where {bounds[name.lower()]} is allowed: ask for that"
            )


def with_packages_shown(installed: InstalledPackages, interpreter: Interpreter) -> Interpreter:
    """An interpreter whose programs find these packages behind the wall."""
    toolchain = interpreter.toolchain
    if toolchain is None:
        return replace(interpreter, packages=str(installed.folder))
    downloaded = LANGUAGES[toolchain.language].package_cache
    if downloaded is not None:
        shown = {here: there for here, there in toolchain.shown.items() if there != downloaded.mount_path}
        variables = {**toolchain.variables, downloaded.variable: downloaded.mount_path}
        shown[str(installed.folder)] = downloaded.mount_path
        return replace(interpreter, toolchain=replace(toolchain, shown=shown, variables=variables))
    shown = {here: there for here, there in toolchain.shown.items() if there != NODE_MODULES}
    shown[str(installed.folder)] = NODE_MODULES
    programs = f"{NODE_MODULES}/.bin"
    folders = (*(folder for folder in toolchain.folders if folder != programs), programs)
    return replace(interpreter, toolchain=replace(toolchain, shown=shown, folders=folders))
