"""The packages that candidates of a new project request. Each set is fetched once and cached by its lock's
hash.
"""

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
from suture.sandbox.packages.cache_eviction import evict_unused_sets, mark_used
from suture.sandbox.packages.go_installer import Go
from suture.sandbox.packages.installer import (
    FETCHED,
    InstalledPackages,
    Installer,
    PackagesRefused,
    WorkFolder,
)
from suture.sandbox.packages.npm_installer import Npm
from suture.sandbox.packages.pip_installer import Pip

NODE_MODULES = "/node_modules"
"""The folder inside the sandbox: node searches for packages in every folder above a file, up to the root."""
INSTALLERS: Mapping[str, Installer] = {"pip": Pip(), "npm": Npm(), "go": Go()}
"""Keys are values of `LanguageFacts.package_client`."""


def manifest_name_for(language: Language) -> str:
    """Return the file in which a new project asks for packages; empty if none are installed for this
    language.
    """
    installer = INSTALLERS.get(LANGUAGES[language].package_client)
    return installer.manifest if installer else ""


def is_lock_path(path: str) -> bool:
    """Return whether Suture writes a lock at this path."""
    return path in {installer.lock for installer in INSTALLERS.values()}


def _find_manifest(files: Mapping[str, bytes], name: str) -> bytes:
    """Return the manifest in the root, or the only one: small models put it beside the code."""
    installed = [content for path, content in files.items() if path.endswith(f"/{name}")]
    return files.get(name, installed[0] if len(installed) == 1 else b"")


def ignore_installed(installed: InstalledPackages) -> None:
    """Do nothing; the default for callers that need no notification."""


@dataclass(frozen=True, kw_only=True)
class PackageSets:
    """The sets of packages of one project. Each set is fetched once and cached.

    Attributes:
        language: The project's language.
        cache: Suture's cache folder.
        may_fetch: Whether sets that are not cached are fetched; a verification fetches nothing.
        sandboxed: Whether the client runs in a sandbox with only the index in reach.
        hosts: Further servers in reach.
        allowed: What may be installed without approval; resolved versions must stay within its bounds.
        on_installed: Called once with each set.
    """

    language: Language
    cache: Path
    may_fetch: bool = True
    sandboxed: bool = True
    hosts: tuple[str, ...] = ()
    allowed: Allowed = field(default_factory=dict)
    on_installed: Callable[[InstalledPackages], None] = ignore_installed
    _installed_sets: dict[tuple[str, ...], InstalledPackages] = field(default_factory=dict, init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)


@dataclass(frozen=True, kw_only=True)
class NewProjectPackages(PackageSets):
    """The packages that candidates of a new project request."""

    _written_files: set[tuple[str, str]] = field(default_factory=set, init=False)

    async def install_for(
        self, files: Mapping[str, bytes], interpreter: Interpreter
    ) -> InstalledPackages | None:
        """Install the packages that a project's files request; `None` if they request none.

        Args:
            files: The project. Its lock counts if Suture wrote it.
            interpreter: The Python that will import the packages.

        Raises:
            PackagesRefused: They cannot be installed.
            PrerequisiteError: The index cannot be reached, or its client is missing.
            StorageError: The cache cannot be written.
        """
        installer = INSTALLERS.get(LANGUAGES[self.language].package_client)
        if installer is None:
            return None
        manifest = _find_manifest(files, installer.manifest).decode("utf-8", "replace")
        wanted = installer.wanted(manifest)
        if not wanted:
            installer.project_files(
                manifest, ""
            )  # raises for a manifest that only appears to request nothing
            return None
        bounds = find_version_bounds(installer.manifest, manifest, self.allowed)
        lock = files.get(installer.lock, b"").decode("utf-8", "replace")
        python = ".".join(interpreter.version.split(".")[:2])
        async with self._lock:
            key = (*wanted, lock)
            if key not in self._installed_sets:
                installed = await self._install(installer, wanted, lock, python, bounds)
                if all(installed.lock != other.lock for other in self._installed_sets.values()):
                    self.on_installed(installed)
                self._installed_sets[key] = installed
            installed = self._installed_sets[key]
        installed = replace(installed, files=installer.project_files(manifest, installed.lock))
        self._written_files.update(installed.files.items())
        return installed

    def wrote_file(self, path: str, text: str) -> bool:
        """Return whether a file was written here, and not by the candidate."""
        return (path, text) in self._written_files

    def allows_file(self, path: str, files: Mapping[str, bytes], interpreter: Interpreter) -> bool:
        """Return whether a candidate's file is a lock that was written here for exactly what it requests."""
        return is_lock_path(path) and self.is_known_lock(
            files.get(path, b"").decode("utf-8", "replace"), files, interpreter
        )

    def is_known_lock(self, lock: str, files: Mapping[str, bytes], interpreter: Interpreter) -> bool:
        """Return whether a lock is one of Suture's: its packages were fetched for exactly what these files
        request.
        """
        python = ".".join(interpreter.version.split(".")[:2])
        installer = INSTALLERS.get(LANGUAGES[self.language].package_client)
        if installer is None:
            return False
        try:
            wanted = installer.wanted(_find_manifest(files, installer.manifest).decode("utf-8", "replace"))
        except PackagesRefused:
            return False
        return self._cache_folder(wanted, lock, python).is_dir()

    def _cache_folder(self, wanted: tuple[str, ...], lock: str, python: str) -> Path:
        digest = content_hash([self.language, python, list(wanted), lock])
        return self.cache / "packages" / digest

    async def _install(
        self,
        installer: Installer,
        wanted: tuple[str, ...],
        lock: str,
        python: str,
        bounds: Mapping[str, str],
    ) -> InstalledPackages:
        place = self._cache_folder(wanted, lock, python)
        mark_used(place)
        if not (lock and place.is_dir()):
            if not self.may_fetch:
                raise PrerequisiteError(
                    f"packages are needed, are not cached, and must not be fetched: {', '.join(wanted)}",
                    remedy="fetch them in a run with --approve-deps ask or allowlist",
                )
            try:
                lock, place = await self._fetch(installer, wanted, python, bounds)
            except OSError as fault:
                raise StorageError(
                    f"packages cannot be stored in {str(self.cache)!r}: {fault.strerror}"
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

    async def _fetch(
        self, installer: Installer, wanted: tuple[str, ...], python: str, bounds: Mapping[str, str]
    ) -> tuple[str, Path]:
        (self.cache / "packages").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".making-", dir=self.cache / "packages") as folder:
            # Two folders: what a client left in the first is not where the second is written.
            first, second = (
                self._create_work_folder(Path(folder) / name, python, bounds) for name in ("resolved", "made")
            )
            lock = await installer.resolve(wanted, first)
            require_within(installer.versions(lock), bounds)
            place = self._cache_folder(wanted, lock, python)
            if not place.is_dir():
                with suppress(FileNotFoundError):
                    (first.folder / FETCHED).rename(second.folder / FETCHED)
                await installer.install(wanted, lock, second)
                shutil.rmtree(second.folder / FETCHED, ignore_errors=True)
                if not stat.S_ISDIR((second.folder / installer.folder).lstat().st_mode):
                    raise PackagesRefused(f"the client left no folder {installer.folder}")
                try:
                    second.folder.rename(place)  # atomic: the set is complete or absent
                except OSError:
                    if not place.is_dir():  # no other run was faster
                        raise
        mark_used(place)
        await asyncio.to_thread(evict_unused_sets, place.parent)
        return lock, place

    def _create_work_folder(self, folder: Path, python: str, bounds: Mapping[str, str]) -> WorkFolder:
        folder.mkdir()
        return WorkFolder(
            folder=folder, python=python, sandboxed=self.sandboxed, hosts=self.hosts, bounds=bounds
        )


def require_within(versions: Mapping[str, str], bounds: Mapping[str, str]) -> None:
    """Check that the resolved versions are those that the allow list permits. Only pip can be told the bounds
    beforehand.

    Raises:
        PackagesRefused: A version is outside its bounds.
    """
    for name, version in versions.items():
        if not is_version_allowed(version, bounds.get(name.lower(), "")):
            raise PackagesRefused(
                f"{name} {version} would be installed, but only {bounds[name.lower()]} is allowed"
            )


def with_packages_shown(installed: InstalledPackages, interpreter: Interpreter) -> Interpreter:
    """Return an interpreter whose programs find these packages inside the sandbox."""
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
