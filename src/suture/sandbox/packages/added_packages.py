"""The packages that candidates add to an existing project, and the choice of the package set for a task.

Each set is fetched once and cached.
"""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from suture.core.records import Task, content_hash, decode_record, encode_record
from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.core.settings import Settings
from suture.errors import StorageError
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.safety import (
    find_requested_packages,
    find_version_bounds,
    normalise_package_name,
    resolve_levels,
)
from suture.sandbox.packages.additions.adder import AddedSet, Files, PackageAdder
from suture.sandbox.packages.additions.go_adder import GoAdder
from suture.sandbox.packages.additions.node_adder import NodeAdder
from suture.sandbox.packages.additions.python_adder import PythonAdder
from suture.sandbox.packages.installer import InstalledPackages, PackagesRefused, evict_unused_sets, mark_used
from suture.sandbox.packages.package_sets import (
    INSTALLERS,
    NewProjectPackages,
    PackageSets,
    ignore_installed,
    python_version,
    require_installed_folder,
    require_within,
)
from suture.sandbox.tuning import MAX_ADDED_SET_BYTES

ADDERS: Mapping[str, PackageAdder] = {"pip": PythonAdder(), "npm": NodeAdder(), "go": GoAdder()}
"""Keys are values of `LanguageFacts.package_client`."""
RECORD_NAME = "added.json"
"""The file in a cached set that holds its `AddedSet`."""


@dataclass(frozen=True, kw_only=True)
class AddedPackages(PackageSets):
    """The packages that candidates request in addition to what a project has.

    A candidate's manifest is accepted only with the content that `normalize_requested_files` gives it, or that is part
    of an installed set (`AddedSet.files`). So a candidate adds packages and changes nothing else in a manifest, and it
    cannot influence what decides the verdict.

    Attributes:
        base: The project's files.
    """

    base: Files
    # What `_installed_sets` has as a key -> why the other locks were not updated (`LockUpdates.failures`).
    _lock_failures: dict[tuple[str, ...], Mapping[str, str]] = field(default_factory=dict, init=False)

    @property
    def _adder(self) -> PackageAdder:
        return ADDERS[LANGUAGES[self.language].package_client]

    def normalize_requested_files(self, written: Mapping[str, str]) -> dict[str, str]:
        """Return a candidate's files with its requested packages written into the project's own manifest.

        Args:
            written: The candidate's files, path -> text. Not trusted.

        Raises:
            PackagesRefused: The candidate requests something that Suture does not install, such as an address.
        """
        requirements = self._adder.find_requested(self.base, written)
        if not requirements:
            return dict(written)
        # A candidate may request packages in several files. They are all written into one manifest.
        request_files = self._adder.request_files(self.base)
        other_files = {path: text for path, text in written.items() if path not in request_files}
        manifest_path = self._adder.manifest_path(self.base)
        return {**other_files, manifest_path: self._adder.write_manifest(self.base, requirements)}

    async def install_for(self, files: Files, interpreter: Interpreter) -> InstalledPackages | None:
        """Install the packages that a project's files add; `None` if they add none.

        Args:
            files: The project with a candidate applied.
            interpreter: The interpreter that it runs on, with its existing packages.

        Raises:
            PackagesRefused: The packages cannot be installed.
            PrerequisiteError: The index cannot be reached, or its client is missing.
            StorageError: The cache cannot be written.
        """
        requirements = self._requested_in(files)
        if not requirements:
            return None
        async with self._lock:
            if requirements not in self._installed_sets:
                self._installed_sets[requirements] = await self._install(requirements, interpreter)
                self.on_installed(self._installed_sets[requirements])
        return self._installed_sets[requirements]

    def wrote_file(self, path: str, text: str) -> bool:
        """Return whether the installation of a set wrote this file, and not the candidate."""
        return any(installed.files.get(path) == text for installed in self._installed_sets.values())

    def allows_file(self, path: str, files: Files, interpreter: Interpreter) -> bool:
        """Return whether a candidate's file is a manifest or a lock exactly as Suture writes it.

        Args:
            path: The file.
            files: The project with the candidate applied.
            interpreter: The interpreter that it runs on.
        """
        text = files.get(path, b"").decode("utf-8", "replace")
        try:
            requirements = self._requested_in(files)
            if not requirements:
                return False
            manifest_path = self._adder.manifest_path(self.base)
            if path == manifest_path and text == self._adder.write_manifest(self.base, requirements):
                return True
            packages: InstalledPackages | AddedSet | None = self._installed_sets.get(requirements)
            if packages is None:
                packages = self._load_cached(self._cache_folder(requirements, interpreter), interpreter)
        except PackagesRefused:
            return False
        return packages is not None and packages.files.get(path) == text

    def follow_up_notes(self, files: Mapping[str, str]) -> tuple[str, ...]:
        """Return what the user must do after applying a candidate's files, as sentences."""
        manifest_path = self._adder.manifest_path(self.base)
        if manifest_path not in files:
            return ()
        known_locks = (*self._adder.updated_locks, *self._adder.other_locks)
        stale_locks = [lock for lock in known_locks if lock in self.base and lock not in files]
        failures = next(
            (
                self._lock_failures[requirements]
                for requirements, installed in self._installed_sets.items()
                if installed.files.get(manifest_path) == files[manifest_path]
            ),
            {},
        )
        locks = ", ".join(f"{lock} {failures.get(lock, '')}".strip() for lock in stale_locks)
        update = f", and update {locks}" if locks else ""
        return (
            f"{manifest_path} requires packages that the project's environment lacks: install them{update}",
        )

    def _requested_in(self, files: Files) -> tuple[str, ...]:
        written = {
            path: files.get(path, b"").decode("utf-8", "replace")
            for path in self._adder.request_files(self.base)
            if files.get(path) != self.base.get(path)
        }
        return self._adder.find_requested(self.base, written) if written else ()

    def _cache_folder(self, requirements: tuple[str, ...], interpreter: Interpreter) -> Path:
        installer = INSTALLERS[LANGUAGES[self.language].package_client]
        names = (
            *self._adder.request_files(self.base),
            self._adder.manifest_path(self.base),
            installer.lock,
            *self._adder.updated_locks,
        )
        project_files = {name: self.base[name].hex() for name in names if name in self.base}
        key = [self.language, python_version(interpreter), project_files, list(requirements)]
        return self.cache / "packages" / content_hash(key)

    def _load_cached(self, set_folder: Path, interpreter: Interpreter) -> AddedSet | None:
        """Return a cached set; `None` if there is none, or if the environment has changed since."""
        content = read_regular_file(set_folder / RECORD_NAME, MAX_ADDED_SET_BYTES)
        if content is None:
            return None
        added = decode_record(AddedSet, json.loads(content))
        # `beside`: the environment's packages that the new ones were resolved against.
        return added if self._adder.is_still_valid(added.beside, interpreter) else None

    async def _install(self, requirements: tuple[str, ...], interpreter: Interpreter) -> InstalledPackages:
        set_folder = self._cache_folder(requirements, interpreter)
        mark_used(set_folder)
        added = self._load_cached(set_folder, interpreter)
        if added is None:
            added = await self._fetch(requirements, set_folder, interpreter)
        added = await self._update_locks(added, requirements, set_folder, interpreter)
        # `path` and `lock` are those of a set that Suture locks itself. Here the lock, if any, is the project's
        # own, and is among `files`.
        return InstalledPackages(
            folder=set_folder / self._adder.folder, path="", lock="", files=added.files, names=added.names
        )

    async def _fetch(
        self, requirements: tuple[str, ...], set_folder: Path, interpreter: Interpreter
    ) -> AddedSet:
        bounds = self._version_bounds(requirements)
        with self._create_work_folders(requirements, python_version(interpreter), bounds) as work_folders:
            added = await self._adder.fetch(self.base, requirements, work_folders, interpreter)
            _, install_folder = work_folders
            require_within(dict(map(_split_version, added.names)), bounds)
            require_installed_folder(install_folder, self._adder.folder)
            await asyncio.to_thread(_store_set, added, install_folder.folder, set_folder)
        await asyncio.to_thread(evict_unused_sets, set_folder.parent)
        return added

    async def _update_locks(
        self, added: AddedSet, requirements: tuple[str, ...], set_folder: Path, interpreter: Interpreter
    ) -> AddedSet:
        """Return a stored set with the updated locks that it lacks. These are stored too, failures are not."""
        self._lock_failures[requirements] = {}
        if not self.may_fetch or not (self.base.keys() & {*self._adder.updated_locks}) - added.files.keys():
            return added
        work_folders = self._create_work_folders(requirements, python_version(interpreter), {})
        with (
            suppress(StorageError),
            work_folders as (work_folder, _),
        ):  # the packages are of use without a lock
            updates = await self._adder.update_locks(self.base, added, work_folder)
            self._lock_failures[requirements] = updates.failures
            if updates.files:
                added = replace(added, files={**added.files, **updates.files})
                write_file_atomically(set_folder / RECORD_NAME, json.dumps(encode_record(added)).encode())
        return added

    def _version_bounds(self, requirements: tuple[str, ...]) -> Mapping[str, str]:
        """Return the allow list's version bounds for the new packages.

        What the project already requires is its author's decision, so those packages get no bounds.
        """
        manifest_path = self._adder.manifest_path(self.base)
        manifest = self.base.get(manifest_path, b"").decode("utf-8", "replace")
        existing_names = {
            name
            for package in find_requested_packages(manifest_path, manifest)
            for name in (package.name, normalise_package_name(package.name))
        }
        bounds = find_version_bounds(
            manifest_path, self._adder.write_manifest(self.base, requirements), self.allowed
        )
        return {name: versions for name, versions in bounds.items() if name not in existing_names}


def _store_set(added: AddedSet, folder: Path, set_folder: Path) -> None:
    """Move a finished folder into the cache, where it replaces a set for another environment."""
    write_file_atomically(folder / RECORD_NAME, json.dumps(encode_record(added)).encode())
    shutil.rmtree(set_folder, ignore_errors=True)
    with suppress(OSError):  # another run was faster
        folder.rename(set_folder)
    if not set_folder.is_dir():
        raise OSError(errno.ENOENT, "it was not kept")


def _split_version(name: str) -> tuple[str, str]:
    """Split `name==1.0` or `name@1.0` into `(name, version)`."""
    package, _, version = name.rpartition("==" if "==" in name else "@")
    return package.lower(), version


def packages_for_task(
    task: Task,
    settings: Settings,
    *,
    may_fetch: bool = True,
    on_installed: Callable[[InstalledPackages], None] = ignore_installed,
) -> NewProjectPackages | AddedPackages | None:
    """Return the packages of a new project, or those added to an existing one; `None` for any other task.

    Args:
        settings: Decide what may be fetched, and where sets are cached.
        may_fetch: Whether sets that are not cached are fetched.
        on_installed: Called once with each set.
    """
    if task.project is None:
        return None
    safety = settings.safety
    levels = resolve_levels(safety)
    if not task.project.is_new and LANGUAGES[task.language].package_client not in ADDERS:
        return None
    create: Callable[..., NewProjectPackages | AddedPackages] = (
        NewProjectPackages if task.project.is_new else partial(AddedPackages, base=task.files)
    )
    return create(
        language=task.language,
        cache=settings.paths.cache,
        may_fetch=may_fetch and safety.approve_deps != "never",
        sandboxed=safety.fetch_packages == "sandbox",
        hosts=safety.package_hosts,
        # Package sets use only the version bounds of the list. An empty list bounds nothing and forbids nothing.
        allowed={} if levels.level_for("dependency.unlisted") == "off" else levels.allowed,
        on_installed=on_installed,
    )
