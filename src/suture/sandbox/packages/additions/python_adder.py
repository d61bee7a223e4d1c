"""Packages of a Python project: `pyproject.toml`, `requirements.in` or `requirements.txt`, by pip."""

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
from suture.sandbox.packages.additions.adder import AddedSet, Files, newline_of, text_in
from suture.sandbox.packages.installer import FETCHED, PackagesRefused, Place
from suture.sandbox.packages.pip_installer import Pip
from suture.sandbox.tuning import MAX_INSTALLED_PACKAGES

PYPROJECT, IN, TXT, LOCK = "pyproject.toml", "requirements.in", "requirements.txt", "requirements.lock"
OTHERS = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml")
INSTALLED = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)-(?P<version>\d[\w.!]*)(?:\+[\w.]+)?\.dist-info")
CONFLICT = "ResolutionImpossible"
KEPT = "what the project has already keeps its version, and this needs another one"
WRITTEN = re.compile(r"([A-Za-z0-9][\w.-]*)")
PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*==\s*(?P<version>\d[\w.!+-]*)")
FOLDED = re.compile(r"\\\r?\n\s+--hash")


class PythonAdder:
    """Added is beside what the environment has: its versions stay, and of these nothing is laid anew."""

    folder = "site"

    def manifest(self, base: Files) -> str:
        """See `PackageAdder`."""
        table = _toml(text_in(base, PYPROJECT))
        if _listed(table) is not None or _poetry(table) is not None:
            return PYPROJECT
        found = next((name for name in (IN, TXT) if name in base), "")
        project = table.get("project")
        own = isinstance(project, dict) and "dependencies" not in project.get("dynamic", ())
        return found or (PYPROJECT if own else TXT)

    def wishes(self, base: Files) -> tuple[str, ...]:
        """See `PackageAdder`: whatever the manifest is, one a line is how most models ask."""
        return tuple(dict.fromkeys((self.manifest(base), TXT)))

    def asked(self, base: Files, written: Mapping[str, str]) -> tuple[str, ...]:
        """See `PackageAdder`."""
        from packaging.requirements import Requirement

        known = _names(self.manifest(base), text_in(base, self.manifest(base)))
        found: dict[str, str] = {}
        for path in self.wishes(base):
            there = {line.strip() for line in text_in(base, path).splitlines()}
            lines = [line for line in _lines(path, written.get(path, "")) if line.strip() not in there]
            new = [line for line in lines if _plain(line) not in known]
            for one in Pip().wanted("\n".join(new)):
                found.setdefault(_plain(Requirement(one).name), one)
        return tuple(one for name, one in found.items() if name not in known)

    def written_down(self, base: Files, new: Sequence[str]) -> str:
        """See `PackageAdder`."""
        path = self.manifest(base)
        text = text_in(base, path)
        if path == PYPROJECT:
            return _in_toml(text, new)
        if "--hash" in text:
            raise PackagesRefused(f"each line of {path} has its hash, and nothing says what it was made of")
        newline = newline_of(text)
        joint = "" if not text or text.endswith("\n") else newline
        return text + joint + "".join(f"{one}{newline}" for one in new)

    async def fetch(
        self, base: Files, new: Sequence[str], places: tuple[Place, Place], interpreter: Interpreter
    ) -> AddedSet:
        """See `PackageAdder`. What the environment or the project's lock has in some version keeps it."""
        first, second = places
        there, path = _installed(interpreter), self._lock(base)
        pins = {**there, **pins_in(text_in(base, path))}
        bounds = {**first.bounds, **{name: f"=={version}" for name, version in pins.items()}}
        try:
            lock = await Pip().resolve(new, replace(first, bounds=bounds))
        except PackagesRefused as fault:
            if CONFLICT in fault.reason:
                raise PackagesRefused(f"{fault.reason} / {KEPT}") from fault
            raise
        lines = lock.splitlines()
        kept = {line: line.split()[0].partition("==") for line in lines}
        fresh = [line for line, (name, _, version) in kept.items() if there.get(_plain(name)) != version]
        beside = {_plain(name): version for line, (name, _, version) in kept.items() if line not in fresh}
        if fresh:
            (first.folder / FETCHED).rename(second.folder / FETCHED)
            await Pip().install(new, "".join(f"{line}\n" for line in fresh), second)
        else:
            (second.folder / self.folder).mkdir()
        files = {self.manifest(base): self.written_down(base, new)}
        if path:
            files[path] = with_pins(text_in(base, path), lines)
        return AddedSet(files=files, names=tuple(line.split()[0] for line in fresh), beside=beside)

    def holds(self, beside: Mapping[str, str], interpreter: Interpreter) -> bool:
        """See `PackageAdder`."""
        return beside.items() <= _installed(interpreter).items()

    def untouched(self, base: Files) -> tuple[str, ...]:
        """See `PackageAdder`."""
        return tuple(name for name in OTHERS if name in base)

    def _lock(self, base: Files) -> str:
        """The file of pins that goes with the manifest; empty where there is none."""
        if LOCK in base:
            return LOCK
        own = TXT in base and self.manifest(base) != TXT
        return TXT if own and is_pinned(text_in(base, TXT)) else ""


def _toml(text: str) -> dict[str, Any]:
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
    table = _toml(text)
    yield from (one for one in _listed(table) or () if isinstance(one, str))
    required = dict(_poetry(table) or {})
    required.pop("python", None)  # not a package
    yield from (f"{name} {versions}".removesuffix(" *") for name, versions in required.items())


def _names(path: str, text: str) -> set[str]:
    return {_plain(line) for line in _lines(path, text)}


def _plain(line: str) -> str:
    found = WRITTEN.match(line.strip())
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _in_toml(text: str, new: Sequence[str]) -> str:
    import tomlkit
    from packaging.requirements import Requirement

    document: Any = tomlkit.parse(text)
    if _listed(_toml(text)) is None and _poetry(_toml(text)) is not None:
        table = document["tool"]["poetry"]["dependencies"]
        for asked in map(Requirement, new):
            if asked.extras or asked.marker:
                raise PackagesRefused(f"{asked} asks for an extra or a machine: not written for Poetry")
            table[asked.name] = str(asked.specifier) or "*"
        return tomlkit.dumps(document)
    if "dependencies" not in document["project"]:
        document["project"]["dependencies"] = tomlkit.array()
    for one in new:
        document["project"]["dependencies"].append(one)
    written = tomlkit.dumps(document)
    if _listed(_toml(written)) != [*(_listed(_toml(text)) or ()), *new]:
        raise PackagesRefused(f"{PYPROJECT} is not written as could be added to")
    return written


def _installed(interpreter: Interpreter) -> dict[str, str]:
    """Name -> version of what an environment has; of a version made for some machine its public part."""
    found: dict[str, str] = {}
    for folder in interpreter.site_packages:
        try:
            names = [path.name for path in islice(Path(folder).iterdir(), MAX_INSTALLED_PACKAGES)]
        except OSError:
            continue
        for match in filter(None, map(INSTALLED.fullmatch, names)):
            found.setdefault(_plain(match["name"]), match["version"])
    return found


def pins_in(text: str) -> dict[str, str]:
    """Plain name -> version."""
    found = (PIN.match(line) for line in text.splitlines())
    return {normalise_package_name(match["name"]): match["version"] for match in found if match}


def is_pinned(text: str) -> bool:
    """Whether all that a text asks for is pinned, as a program writes it, and not a person."""
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    asks = [line for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))]
    return bool(asks) and all(map(PIN.match, asks))


def with_pins(text: str, lines: Sequence[str]) -> str:
    """A lock with those lines that it lacks, each before the first name that comes after it.

    Args:
        text: The lock.
        lines: `name==version --hash=sha256:...`, each.
    """
    known, newline = pins_in(text), newline_of(text)
    folded, hashed = bool(FOLDED.search(text)), "--hash" in text or not known
    for line in lines:
        pin, _, hashes = line.partition(" ")
        if normalise_package_name(pin.partition("==")[0]) in known:
            continue
        entry = pin if not hashed else f"{pin} \\{newline}    {hashes}" if folded else line
        text = _inserted(text, pin, entry + newline, newline)
    return text


def _inserted(text: str, pin: str, entry: str, newline: str) -> str:
    at = 0
    for line in text.splitlines(keepends=True):
        match = PIN.match(line)
        if match and normalise_package_name(match["name"]) > normalise_package_name(pin.partition("==")[0]):
            return text[:at] + entry + text[at:]
        at += len(line)
    return text + ("" if not text or text.endswith("\n") else newline) + entry
