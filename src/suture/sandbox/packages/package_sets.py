"""The packages that candidates of a new project request. Each set is fetched once and cached by its lock."""

from __future__ import annotations

import asyncio
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from suture.core.records import Language, content_hash
from suture.errors import PrerequisiteError, StorageError
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.safety import Allowed, find_version_bounds, is_version_allowed
from suture.sandbox.packages.go_installer import Go
from suture.sandbox.packages.installer import (
    FETCHED,
    InstalledPackages,
    Installer,
    PackagesRefused,
    WorkFolder,
    evict_unused_sets,
    mark_used,
)
from suture.sandbox.packages.npm_installer import Npm
from suture.sandbox.packages.pip_installer import Pip

NODE_MODULES = "/node_modules"
"""Node searches for packages in every folder above a file, so a mount at the root serves all of them."""
INSTALLERS: Mapping[str, Installer] = {"pip": Pip(), "npm": Npm(), "go": Go()}
"""Keys are values of `LanguageFacts.package_client`."""


def manifest_name_for(language: Language) -> str:
    """Return the file in which a new project requests packages; empty if its language has no installer."""
    installer = INSTALLERS.get(LANGUAGES[language].package_client)
    return installer.manifest if installer else ""


def is_lock_path(path: str) -> bool:
    """Return whether Suture writes a lock at this path."""
    return path in {installer.lock for installer in INSTALLERS.values()}


def _find_manifest(files: Mapping[str, bytes], name: str) -> str:
    """Return the manifest in the root, or the only one: small models put it next to the code."""
    nested = [content for path, content in files.items() if path.endswith(f"/{name}")]
    content = files.get(name, nested[0] if len(nested) == 1 else b"")
    return content.decode("utf-8", "replace")


def python_version(interpreter: Interpreter) -> str:
    """Return the version `X.Y` of an interpreter."""
    return ".".join(interpreter.version.split(".")[:2])


def ignore_installed(installed: InstalledPackages) -> None:
    """Do nothing: the default for callers that need no notification."""


@dataclass(frozen=True, kw_only=True)
class PackageSets:
    """The sets of packages of one project. Each set is fetched once and cached.

    Attributes:
        language: The project's language.
        cache: Suture's cache folder.
        may_fetch: Whether sets that are not cached are fetched; a verification fetches nothing.
        sandboxed: Whether the client runs in a sandbox, from which only the index can be reached.
        hosts: Servers besides the index that the user lets the client reach.
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

    @contextmanager
    def _create_work_folders(
        self, requirements: Sequence[str], python: str, bounds: Mapping[str, str]
    ) -> Iterator[tuple[WorkFolder, WorkFolder]]:
        """Create two empty folders, one to resolve and one to install in, until the context is left.

        They are separate because a client is not trusted: nothing that it left in the first folder, except
        what is moved on purpose, is there when the second is filled.

        Raises:
            PrerequisiteError: Packages must not be fetched.
            StorageError: The cache cannot be written.
        """
        if not self.may_fetch:
            raise PrerequisiteError(
                f"packages are needed, are not cached, and must not be fetched: {', '.join(requirements)}",
                remedy="fetch them in a run with --approve-deps ask or allowlist",
            )
        sets_folder = self.cache / "packages"
        try:
            sets_folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".making-", dir=sets_folder) as parent:
                resolve_folder, install_folder = (
                    WorkFolder(
                        folder=Path(parent) / name,
                        python=python,
                        sandboxed=self.sandboxed,
                        hosts=self.hosts,
                        bounds=bounds,
                    )
                    for name in ("resolve", "install")
                )
                resolve_folder.folder.mkdir()
                install_folder.folder.mkdir()
                yield resolve_folder, install_folder
        except OSError as fault:
            raise StorageError(
                f"packages cannot be stored in {str(self.cache)!r}: {fault.strerror}"
            ) from fault


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
            PackagesRefused: The packages cannot be installed.
            PrerequisiteError: The index cannot be reached, or its client is missing.
            StorageError: The cache cannot be written.
        """
        installer = INSTALLERS.get(LANGUAGES[self.language].package_client)
        if installer is None:
            return None
        manifest = _find_manifest(files, installer.manifest)
        requirements = installer.parse_manifest(manifest)
        if not requirements:
            # Raises for a manifest that only appears to request nothing.
            installer.project_files(manifest, "")
            return None
        bounds = find_version_bounds(installer.manifest, manifest, self.allowed)
        lock = files.get(installer.lock, b"").decode("utf-8", "replace")
        async with self._lock:
            key = (*requirements, lock)
            if key not in self._installed_sets:
                installed = await self._install(
                    installer, requirements, lock, python_version(interpreter), bounds
                )
                # Another key may lead to the same set: with and without a lock, a manifest requests the same.
                if all(installed.lock != known.lock for known in self._installed_sets.values()):
                    self.on_installed(installed)
                self._installed_sets[key] = installed
            installed = self._installed_sets[key]
        installed = replace(installed, files=installer.project_files(manifest, installed.lock))
        self._written_files.update(installed.files.items())
        return installed

    def wrote_file(self, path: str, text: str) -> bool:
        """Return whether Suture wrote this file, and not the candidate."""
        return (path, text) in self._written_files

    def allows_file(self, path: str, files: Mapping[str, bytes], interpreter: Interpreter) -> bool:
        """Return whether a candidate's file is a lock that Suture wrote for exactly the candidate's requests."""
        return is_lock_path(path) and self.is_known_lock(
            files.get(path, b"").decode("utf-8", "replace"), files, interpreter
        )

    def is_known_lock(self, lock: str, files: Mapping[str, bytes], interpreter: Interpreter) -> bool:
        """Return whether Suture has fetched this lock's packages for exactly what these files request."""
        installer = INSTALLERS.get(LANGUAGES[self.language].package_client)
        if installer is None:
            return False
        try:
            requirements = installer.parse_manifest(_find_manifest(files, installer.manifest))
        except PackagesRefused:
            return False
        return self._cache_folder(requirements, lock, python_version(interpreter)).is_dir()

    def _cache_folder(self, requirements: tuple[str, ...], lock: str, python: str) -> Path:
        return self.cache / "packages" / content_hash([self.language, python, list(requirements), lock])

    async def _install(
        self,
        installer: Installer,
        requirements: tuple[str, ...],
        lock: str,
        python: str,
        bounds: Mapping[str, str],
    ) -> InstalledPackages:
        set_folder = self._cache_folder(requirements, lock, python)
        mark_used(set_folder)
        if not (lock and set_folder.is_dir()):
            lock, set_folder = await self._fetch(installer, requirements, python, bounds)
        if self.may_fetch:
            require_within(installer.versions(lock), bounds)
        return InstalledPackages(
            folder=set_folder / installer.folder,
            path=installer.lock,
            lock=lock,
            files={installer.lock: lock},
            names=installer.names(lock, set_folder),
        )

    async def _fetch(
        self, installer: Installer, requirements: tuple[str, ...], python: str, bounds: Mapping[str, str]
    ) -> tuple[str, Path]:
        """Fetch a set into the cache, and return `(its lock, its folder)`."""
        with self._create_work_folders(requirements, python, bounds) as (resolve_folder, install_folder):
            lock = await installer.resolve(requirements, resolve_folder)
            require_within(installer.versions(lock), bounds)
            set_folder = self._cache_folder(requirements, lock, python)
            if not set_folder.is_dir():
                with suppress(FileNotFoundError):
                    (resolve_folder.folder / FETCHED).rename(install_folder.folder / FETCHED)
                await installer.install(requirements, lock, install_folder)
                shutil.rmtree(install_folder.folder / FETCHED, ignore_errors=True)
                require_installed_folder(install_folder, installer.folder)
                try:
                    install_folder.folder.rename(set_folder)  # atomic: the set is complete or absent
                except OSError:
                    if not set_folder.is_dir():  # no other run was faster
                        raise
        mark_used(set_folder)
        await asyncio.to_thread(evict_unused_sets, set_folder.parent)
        return lock, set_folder


def require_installed_folder(work_folder: WorkFolder, name: str) -> None:
    """Check that a client left a real folder `name`, and not a link to somewhere else.

    Raises:
        PackagesRefused: The client left no such folder.
    """
    if not stat.S_ISDIR((work_folder.folder / name).lstat().st_mode):
        raise PackagesRefused(f"the client left no folder {name}")


def require_within(versions: Mapping[str, str], bounds: Mapping[str, str]) -> None:
    """Check resolved versions against the allow list, because only pip accepts bounds in advance.

    Raises:
        PackagesRefused: A version is outside its bounds.
    """
    for name, version in versions.items():
        # A package without bounds may have any version, which an empty specifier says.
        if not is_version_allowed(version, bounds.get(name.lower(), "")):
            raise PackagesRefused(
                f"{name} {version} would be installed, but only {bounds[name.lower()]} is allowed"
            )


def with_packages_shown(installed: InstalledPackages, interpreter: Interpreter) -> Interpreter:
    """Return an interpreter whose programs find these packages inside the sandbox."""
    toolchain = interpreter.toolchain
    if toolchain is None:
        return replace(interpreter, packages=str(installed.folder))
    package_cache = LANGUAGES[toolchain.language].package_cache
    target = NODE_MODULES if package_cache is None else package_cache.mount_path
    shown = {source: path for source, path in toolchain.shown.items() if path != target}
    shown[str(installed.folder)] = target
    if package_cache is not None:
        variables = {**toolchain.variables, package_cache.variable: target}
        return replace(interpreter, toolchain=replace(toolchain, shown=shown, variables=variables))
    programs = f"{NODE_MODULES}/.bin"
    folders = (*(folder for folder in toolchain.folders if folder != programs), programs)
    return replace(interpreter, toolchain=replace(toolchain, shown=shown, folders=folders))
