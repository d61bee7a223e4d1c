"""Add packages to a Python project with pip: `pyproject.toml`, `requirements.in` or `requirements.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from suture.core.safe_files import parse_toml
from suture.project.languages import Interpreter
from suture.project.safety import normalise_package_name
from suture.sandbox.packages.additions.adder import AddedSet, Files, detect_newline, read_file_text
from suture.sandbox.packages.installer import FETCHED, PackagesRefused, WorkFolder
from suture.sandbox.packages.pip_installer import Pip
from suture.sandbox.tuning import MAX_INSTALLED_PACKAGES

PYPROJECT, REQUIREMENTS_IN, REQUIREMENTS_TXT, LOCK = (
    "pyproject.toml",
    "requirements.in",
    "requirements.txt",
    "requirements.lock",
)
OTHER_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml")
DIST_INFO = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)-(?P<version>\d[\w.!]*)(?:\+[\w.]+)?\.dist-info")
CONFLICT = "ResolutionImpossible"
"""pip's own word for requirements that contradict each other."""
CONFLICT_HINT = (
    "the project's existing packages keep their versions, and this needs another version of one of them"
)
WRITTEN_NAME = re.compile(r"([A-Za-z0-9][\w.-]*)")
PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*==\s*(?P<version>\d[\w.!+-]*)")
CONTINUED_LINE = re.compile(r"\\\r?\n\s+--hash")


class PythonAdder:
    """Installs beside the existing environment: its versions stay, and nothing of it is installed again."""

    folder = "site"

    def manifest(self, base: Files) -> str:
        """See `PackageAdder`."""
        table = _parse_toml(read_file_text(base, PYPROJECT))
        if _listed(table) is not None or _poetry(table) is not None:
            return PYPROJECT
        found = next((name for name in (REQUIREMENTS_IN, REQUIREMENTS_TXT) if name in base), "")
        project = table.get("project")
        has_separate_lock = isinstance(project, dict) and "dependencies" not in project.get("dynamic", ())
        return found or (PYPROJECT if has_separate_lock else REQUIREMENTS_TXT)

    def request_files(self, base: Files) -> tuple[str, ...]:
        """See `PackageAdder`. Whatever the manifest is, most models ask in `requirements.txt`, one package
        per line.
        """
        return tuple(dict.fromkeys((self.manifest(base), REQUIREMENTS_TXT)))

    def requested(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`."""
        from packaging.requirements import Requirement

        known = _names(self.manifest(base), read_file_text(base, self.manifest(base)))
        found: dict[str, str] = {}
        for path in self.request_files(base):
            there = {line.strip() for line in read_file_text(base, path).splitlines()}
            lines = [line for line in _lines(path, written.get(path, "")) if line.strip() not in there]
            new = [line for line in lines if _plain(line) not in known]
            for one in Pip().wanted("\n".join(new)):
                found.setdefault(_plain(Requirement(one).name), one)
        return tuple(one for name, one in found.items() if name not in known)

    def write_manifest(self, base: Files, new: Sequence[str]) -> str:
        """See `PackageAdder`."""
        path = self.manifest(base)
        text = read_file_text(base, path)
        if path == PYPROJECT:
            return _in_toml(text, new)
        if "--hash" in text:
            raise PackagesRefused(
                f"{path} contains hashes, and the file that it was generated from is unknown"
            )
        newline = detect_newline(text)
        separator = "" if not text or text.endswith("\n") else newline
        return text + separator + "".join(f"{one}{newline}" for one in new)

    async def fetch(
        self,
        base: Files,
        new: Sequence[str],
        work_folders: tuple[WorkFolder, WorkFolder],
        interpreter: Interpreter,
    ) -> AddedSet:
        """See `PackageAdder`. Packages that the environment or the project's lock has keep their versions."""
        first, second = work_folders
        there, path = _installed(interpreter), self._find_lock(base)
        pins = {**there, **parse_pins(read_file_text(base, path))}
        bounds = {**first.bounds, **{name: f"=={version}" for name, version in pins.items()}}
        try:
            lock = await Pip().resolve(new, replace(first, bounds=bounds))
        except PackagesRefused as fault:
            if CONFLICT in fault.reason:
                raise PackagesRefused(f"{fault.reason} / {CONFLICT_HINT}") from fault
            raise
        lines = lock.splitlines()
        parts = {line: line.split()[0].partition("==") for line in lines}
        new_lines = [line for line, (name, _, version) in parts.items() if there.get(_plain(name)) != version]
        beside = {
            _plain(name): version for line, (name, _, version) in parts.items() if line not in new_lines
        }
        if new_lines:
            (first.folder / FETCHED).rename(second.folder / FETCHED)
            await Pip().install(new, "".join(f"{line}\n" for line in new_lines), second)
        else:
            (second.folder / self.folder).mkdir()
        files = {self.manifest(base): self.write_manifest(base, new)}
        if path:
            files[path] = insert_pins(read_file_text(base, path), lines)
        return AddedSet(files=files, names=tuple(line.split()[0] for line in new_lines), beside=beside)

    def is_still_valid(self, beside: Mapping[str, str], interpreter: Interpreter) -> bool:
        """See `PackageAdder`."""
        return beside.items() <= _installed(interpreter).items()

    def outdated_locks(self, base: Files) -> tuple[str, ...]:
        """See `PackageAdder`."""
        return tuple(name for name in OTHER_LOCKS if name in base)

    def _find_lock(self, base: Files) -> str:
        """Return the file of pins that belongs to the manifest; empty if there is none."""
        if LOCK in base:
            return LOCK
        has_separate_lock = REQUIREMENTS_TXT in base and self.manifest(base) != REQUIREMENTS_TXT
        return (
            REQUIREMENTS_TXT
            if has_separate_lock and is_pinned(read_file_text(base, REQUIREMENTS_TXT))
            else ""
        )


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return dict(parse_toml(text))
    except ValueError as fault:
        raise PackagesRefused(f"{PYPROJECT} cannot be read: {fault}"[:200]) from fault


def _listed(table: Mapping[str, Any]) -> list[Any] | None:
    project = table.get("project")
    found = project.get("dependencies") if isinstance(project, dict) else None
    return found if isinstance(found, list) else None


def _poetry(table: Mapping[str, Any]) -> dict[str, Any] | None:
    found: Any = table
    for name in ("tool", "poetry", "dependencies"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _lines(path: str, text: str) -> Iterator[str]:
    """The requirements that a manifest says, one a line."""
    if path != PYPROJECT:
        yield from text.replace("\\\n", " ").splitlines()
        return
    table = _parse_toml(text)
    yield from (one for one in _listed(table) or () if isinstance(one, str))
    required = dict(_poetry(table) or {})
    required.pop("python", None)  # not a package
    yield from (f"{name} {versions}".removesuffix(" *") for name, versions in required.items())


def _names(path: str, text: str) -> set[str]:
    return {_plain(line) for line in _lines(path, text)}


def _plain(line: str) -> str:
    found = WRITTEN_NAME.match(line.strip())
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _in_toml(text: str, new: Sequence[str]) -> str:
    import tomlkit
    from packaging.requirements import Requirement

    document: Any = tomlkit.parse(text)
    if _listed(_parse_toml(text)) is None and _poetry(_parse_toml(text)) is not None:
        table = document["tool"]["poetry"]["dependencies"]
        for requested in map(Requirement, new):
            if requested.extras or requested.marker:
                raise PackagesRefused(f"{requested} asks for an extra or a machine: not written for Poetry")
            table[requested.name] = str(requested.specifier) or "*"
        return tomlkit.dumps(document)
    if "dependencies" not in document["project"]:
        document["project"]["dependencies"] = tomlkit.array()
    for one in new:
        document["project"]["dependencies"].append(one)
    written = tomlkit.dumps(document)
    if _listed(_parse_toml(written)) != [*(_listed(_parse_toml(text)) or ()), *new]:
        raise PackagesRefused(f"{PYPROJECT} is written in a way that packages cannot be added to")
    return written


def _installed(interpreter: Interpreter) -> dict[str, str]:
    """Return name -> version of an environment's packages; of a local version only the public part."""
    found: dict[str, str] = {}
    for folder in interpreter.site_packages:
        try:
            names = [path.name for path in islice(Path(folder).iterdir(), MAX_INSTALLED_PACKAGES)]
        except OSError:
            continue
        for match in filter(None, map(DIST_INFO.fullmatch, names)):
            found.setdefault(_plain(match["name"]), match["version"])
    return found


def parse_pins(text: str) -> dict[str, str]:
    """Return normalized name -> pinned version."""
    found = (PIN.match(line) for line in text.splitlines())
    return {normalise_package_name(match["name"]): match["version"] for match in found if match}


def is_pinned(text: str) -> bool:
    """Return whether everything that a text requests is pinned, so that a program wrote it and not a
    person.
    """
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    asks = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))]
    return bool(asks) and all(map(PIN.match, asks))


def insert_pins(text: str, lines: Sequence[str]) -> str:
    """Return a lock with the missing lines added, each before the first name that sorts after it.

    Args:
        text: The lock.
        lines: Lines of the form `name==version --hash=sha256:...`.
    """
    known, newline = parse_pins(text), detect_newline(text)
    folded, hashed = bool(CONTINUED_LINE.search(text)), "--hash" in text or not known
    for line in lines:
        pin, _, hashes = line.partition(" ")
        if normalise_package_name(pin.partition("==")[0]) in known:
            continue
        entry = pin if not hashed else f"{pin} \\{newline}    {hashes}" if folded else line
        text = _insert_line(text, pin, entry + newline, newline)
    return text


def _insert_line(text: str, pin: str, entry: str, newline: str) -> str:
    at = 0
    for line in text.splitlines(keepends=True):
        match = PIN.match(line)
        if match and normalise_package_name(match["name"]) > normalise_package_name(pin.partition("==")[0]):
            return text[:at] + entry + text[at:]
        at += len(line)
    return text + ("" if not text or text.endswith("\n") else newline) + entry
