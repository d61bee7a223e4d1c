"""Add packages to a Python project with pip: `pyproject.toml`, `requirements.in` or `requirements.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from suture.core.safe_files import parse_toml
from suture.project.languages import Interpreter
from suture.project.safety import normalise_package_name
from suture.sandbox.packages.additions.adder import (
    AddedSet,
    Files,
    LockUpdates,
    PackageAdder,
    WorkFolders,
    detect_newline,
    read_file_text,
)
from suture.sandbox.packages.additions.lock_update import PYTHON_LOCK_TOOLS, update_locks
from suture.sandbox.packages.client import NetworkAccess
from suture.sandbox.packages.installer import FETCHED, MAX_QUOTED_CHARS, PackagesRefused, WorkFolder
from suture.sandbox.packages.pip_installer import Pip, find_pip_access
from suture.sandbox.tuning import MAX_INSTALLED_PACKAGES

PYPROJECT = "pyproject.toml"
REQUIREMENTS_IN = "requirements.in"
REQUIREMENTS_TXT = "requirements.txt"
LOCK = "requirements.lock"
DIST_INFO = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)-(?P<version>\d[\w.!]*)(?:\+[\w.]+)?\.dist-info")
"""Matches the folder with the metadata of an installed package. A local version, after `+`, is left out."""
CONFLICT = "ResolutionImpossible"
"""pip's own word for requirements that contradict each other."""
CONFLICT_HINT = (
    "the project's existing packages keep their versions, and this needs another version of one of them"
)
WRITTEN_NAME = re.compile(r"([A-Za-z0-9][\w.-]*)")
"""Matches a package's name as its author wrote it."""
PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*==\s*(?P<version>\d[\w.!+-]*)")
"""Matches a requirement of exactly one version."""
CONTINUED_LINE = re.compile(r"\\\r?\n\s+--hash")
"""Matches a requirement that continues with its hash on the next line."""


class PythonAdder(PackageAdder):
    """Installs in addition to the existing environment, whose packages keep their versions."""

    folder = "site"
    updated_locks = PYTHON_LOCK_TOOLS.keys()
    other_locks = ("Pipfile.lock", "pylock.toml")

    def manifest_path(self, base: Files) -> str:
        """See `PackageAdder`."""
        table = _parse_toml(read_file_text(base, PYPROJECT))
        if _project_dependencies(table) is not None or _poetry_dependencies(table) is not None:
            return PYPROJECT
        for path in (REQUIREMENTS_IN, REQUIREMENTS_TXT):
            if path in base:
                return path
        project = table.get("project")
        can_list = isinstance(project, dict) and "dependencies" not in project.get("dynamic", ())
        return PYPROJECT if can_list else REQUIREMENTS_TXT

    def request_files(self, base: Files) -> tuple[str, ...]:
        """See `PackageAdder`. Whatever the manifest is, most models request packages in `requirements.txt`."""
        return tuple(dict.fromkeys((self.manifest_path(base), REQUIREMENTS_TXT)))

    def find_requested(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`."""
        from packaging.requirements import Requirement

        manifest_path = self.manifest_path(base)
        manifest = read_file_text(base, manifest_path)
        existing_names = {_normalised_name(line) for line in _requirement_lines(manifest_path, manifest)}
        requirements: dict[str, str] = {}
        for path in self.request_files(base):
            old_lines = {line.strip() for line in read_file_text(base, path).splitlines()}
            lines = _requirement_lines(path, written.get(path, ""))
            new_lines = [line for line in lines if line.strip() not in old_lines]
            unknown = [line for line in new_lines if _normalised_name(line) not in existing_names]
            for requirement in Pip().parse_manifest("\n".join(unknown)):
                requirements.setdefault(_normalised_name(Requirement(requirement).name), requirement)
        return tuple(requirement for name, requirement in requirements.items() if name not in existing_names)

    def write_manifest(self, base: Files, requirements: Sequence[str]) -> str:
        """See `PackageAdder`."""
        path = self.manifest_path(base)
        text = read_file_text(base, path)
        if path == PYPROJECT:
            return _add_to_toml(text, requirements)
        if "--hash" in text:
            raise PackagesRefused(
                f"{path} contains hashes, and the file that it was generated from is unknown"
            )
        newline = detect_newline(text)
        separator = "" if not text or text.endswith("\n") else newline
        return text + separator + "".join(f"{requirement}{newline}" for requirement in requirements)

    async def fetch(
        self, base: Files, requirements: Sequence[str], work_folders: WorkFolders, interpreter: Interpreter
    ) -> AddedSet:
        """See `PackageAdder`. Packages that the environment or the project's lock has keep their versions."""
        resolve_folder, install_folder = work_folders
        installed, lock_path = _installed_versions(interpreter), self._find_lock(base)
        pins = {**installed, **parse_pins(read_file_text(base, lock_path))}
        bounds = {**resolve_folder.bounds, **{name: f"=={version}" for name, version in pins.items()}}
        try:
            lock = await Pip().resolve(requirements, replace(resolve_folder, bounds=bounds))
        except PackagesRefused as fault:
            if CONFLICT in fault.reason:
                raise PackagesRefused(f"{fault.reason} / {CONFLICT_HINT}") from fault
            raise
        lines = lock.splitlines()
        missing_lines: list[str] = []
        # The environment's packages that the new ones were resolved against; the set is valid only together with them.
        beside: dict[str, str] = {}
        for line in lines:
            name, _, version = line.split()[0].partition("==")
            if installed.get(_normalised_name(name)) == version:
                beside[_normalised_name(name)] = version
            else:
                missing_lines.append(line)
        if missing_lines:
            (resolve_folder.folder / FETCHED).rename(install_folder.folder / FETCHED)
            await Pip().install(requirements, "".join(f"{line}\n" for line in missing_lines), install_folder)
        else:
            (install_folder.folder / self.folder).mkdir()
        files = {self.manifest_path(base): self.write_manifest(base, requirements)}
        if lock_path:
            files[lock_path] = insert_pins(read_file_text(base, lock_path), lines)
        return AddedSet(
            files=files,
            names=tuple(line.split()[0] for line in missing_lines),
            beside=beside,
            # Also of what the environment has: the tests run with these versions.
            lock_parts={line.split()[0]: (line.rpartition("--hash=")[2],) for line in lines},
        )

    async def update_locks(self, base: Files, added: AddedSet, work_folder: WorkFolder) -> LockUpdates:
        """See `PackageAdder`."""
        find_access = partial(_find_python_access, list(map(_normalised_name, added.lock_parts)))
        manifest_path = self.manifest_path(base)
        return await update_locks(PYTHON_LOCK_TOOLS, base, manifest_path, added, work_folder, find_access)

    def is_still_valid(self, beside: Mapping[str, str], interpreter: Interpreter) -> bool:
        """See `PackageAdder`."""
        return beside.items() <= _installed_versions(interpreter).items()

    def _find_lock(self, base: Files) -> str:
        """Return the file of pins that belongs to the manifest; empty if there is none."""
        if LOCK in base:
            return LOCK
        if REQUIREMENTS_TXT not in base or self.manifest_path(base) == REQUIREMENTS_TXT:
            return ""
        return REQUIREMENTS_TXT if is_pinned(read_file_text(base, REQUIREMENTS_TXT)) else ""


async def _find_python_access(names: Sequence[str], work_folder: WorkFolder) -> NetworkAccess:
    """Return what uv, Poetry or PDM may reach: the same as pip."""
    access = await find_pip_access(names, work_folder)
    certificate = access.variables.get("PIP_CERT")
    if not certificate:
        return access
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    return replace(access, variables={**access.variables, **dict.fromkeys(names, certificate)})


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return dict(parse_toml(text))
    except ValueError as fault:
        raise PackagesRefused(f"{PYPROJECT} cannot be read: {fault}"[:MAX_QUOTED_CHARS]) from fault


def _project_dependencies(table: Mapping[str, Any]) -> list[Any] | None:
    """Return `project.dependencies` of a `pyproject.toml`, if it is a list."""
    project = table.get("project")
    dependencies = project.get("dependencies") if isinstance(project, dict) else None
    return dependencies if isinstance(dependencies, list) else None


def _poetry_dependencies(table: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return `tool.poetry.dependencies` of a `pyproject.toml`, if it is a table."""
    value: Any = table
    for name in ("tool", "poetry", "dependencies"):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def _requirement_lines(path: str, text: str) -> Iterator[str]:
    """Yield the requirements in a manifest, each as a line of a `requirements.txt`."""
    if path != PYPROJECT:
        yield from text.replace("\\\n", " ").splitlines()
        return
    table = _parse_toml(text)
    yield from (entry for entry in _project_dependencies(table) or () if isinstance(entry, str))
    for name, versions in (_poetry_dependencies(table) or {}).items():
        if name != "python":  # a bound of the interpreter, not a package
            yield f"{name} {versions}".removesuffix(" *")


def _normalised_name(line: str) -> str:
    """Return the normalised name of the package that a line begins with; empty if there is none."""
    match = WRITTEN_NAME.match(line.strip())
    return normalise_package_name(match[1]) if match else ""


def _add_to_toml(text: str, requirements: Sequence[str]) -> str:
    """Return a `pyproject.toml` with requirements added; the rest of it stays as it is written."""
    import tomlkit
    from packaging.requirements import Requirement

    document: Any = tomlkit.parse(text)
    old_list = _project_dependencies(_parse_toml(text))
    if old_list is None and _poetry_dependencies(_parse_toml(text)) is not None:
        table = document["tool"]["poetry"]["dependencies"]
        for requirement in map(Requirement, requirements):
            if requirement.extras or requirement.marker:
                raise PackagesRefused(f"{requirement} asks for an extra or a machine: not written for Poetry")
            table[requirement.name] = str(requirement.specifier) or "*"
        return tomlkit.dumps(document)
    if "dependencies" not in document["project"]:
        document["project"]["dependencies"] = tomlkit.array()
    for line in requirements:
        document["project"]["dependencies"].append(line)
    new_text = tomlkit.dumps(document)
    if _project_dependencies(_parse_toml(new_text)) != [*(old_list or ()), *requirements]:
        raise PackagesRefused(f"{PYPROJECT} is written in a way that packages cannot be added to")
    return new_text


def _installed_versions(interpreter: Interpreter) -> dict[str, str]:
    """Return name -> version of an environment's packages; of a local version only the public part."""
    versions: dict[str, str] = {}
    for folder in interpreter.site_packages:
        try:
            names = [path.name for path in islice(Path(folder).iterdir(), MAX_INSTALLED_PACKAGES)]
        except OSError:
            continue
        for match in filter(None, map(DIST_INFO.fullmatch, names)):
            versions.setdefault(_normalised_name(match["name"]), match["version"])
    return versions


def parse_pins(text: str) -> dict[str, str]:
    """Return normalized name -> pinned version."""
    matches = filter(None, map(PIN.match, text.splitlines()))
    return {normalise_package_name(match["name"]): match["version"] for match in matches}


def is_pinned(text: str) -> bool:
    """Return whether a file pins everything that it requests, so that a program must have written it."""
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    requirements = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))]
    return bool(requirements) and all(map(PIN.match, requirements))


def insert_pins(text: str, lines: Sequence[str]) -> str:
    """Return a lock with the missing lines added, each before the first name that sorts after it.

    Args:
        text: The lock.
        lines: Lines of the form `name==version --hash=sha256:...`.
    """
    pinned, newline = parse_pins(text), detect_newline(text)
    # Follow the style of the lock: with or without hashes, and these on the same line or on the next one.
    has_hashes, continues_lines = "--hash" in text or not pinned, bool(CONTINUED_LINE.search(text))
    for line in lines:
        pin, _, hashes = line.partition(" ")
        name = normalise_package_name(pin.partition("==")[0])
        if name in pinned:
            continue
        entry = line if has_hashes else pin
        if has_hashes and continues_lines:
            entry = f"{pin} \\{newline}    {hashes}"
        text = _insert_line(text, name, entry + newline, newline)
    return text


def _insert_line(text: str, name: str, entry: str, newline: str) -> str:
    """Return a lock with an entry before the first name that sorts after its own, or at the end."""
    start = 0
    for line in text.splitlines(keepends=True):
        match = PIN.match(line)
        if match and normalise_package_name(match["name"]) > name:
            return text[:start] + entry + text[start:]
        start += len(line)
    return text + ("" if not text or text.endswith("\n") else newline) + entry
