"""Go's standard library, compiled once and shown read-only to every run.

Go compiles whatever its cache lacks, and a run's own cache is thrown away because a candidate may have
written to it. This cache is filled by runs that contain no project, and linked into the cache of each later
run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from io import BytesIO
from pathlib import Path

from suture.core.settings import SandboxSettings
from suture.judge.sandbox_programs import PRIVATE_FOLDER, make_test_limits
from suture.judge.tuning import GO_COMPILE_ROUNDS, GO_COMPILE_TIMEOUT_S, MAX_GO_CACHE_BYTES, MAX_GO_PACKAGES
from suture.project.languages import LANGUAGES, Interpreter, Toolchain, program_environment
from suture.sandbox import BOX, RunRequest, Sandbox, SupportsCacheDir, mounts_for_interpreter

MOUNT_POINT = "/go-library"
MOUNTABLE_LEVELS = ("namespace", "container", "user_kernel")
"""Sandboxes that can show a folder of this machine at a path of our choice."""
PROGRAM, PLAN, ENTRIES, STATE = "go_build_cache_program.py", "plan.json", "entries.zip", "state.json"
ENTRY = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}-[ad]")
IMPORT = re.compile(rb'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([a-z][a-z0-9/]{0,80})"\s*(?://.*)?$', re.MULTILINE)
EXCLUDED_NAMES = {"all", "builtin", "cgo", "cmd", "internal", "race", "std", "vendor"}
REQUIRES = re.compile(rb"^\s*require\b", re.MULTILINE)
COMMON_PACKAGES = (
    "crypto/sha256",
    "database/sql",
    "encoding/json",
    "flag",
    "go/ast",
    "net/http/httptest",
    "os/exec",
)
"""Packages that third-party modules often need, compiled in advance with their dependencies."""
GO_WRAPPER = """#!/bin/sh
# What lies in the library cannot be changed; a date keeps Go from clearing out what is old.
if [ -n "$GOCACHE" ] && [ ! -e "$GOCACHE" ]; then
    cp -rs {there}/entries "$GOCACHE" && date +%s >"$GOCACHE/trim.txt"
fi 2>/dev/null
exec '{go}' "$@"
"""


async def add_go_build_cache(
    interpreter: Interpreter, files: Mapping[str, bytes], sandbox: Sandbox, settings: SandboxSettings
) -> Interpreter:
    """Return the interpreter with a compiled copy of the standard library packages that a project imports.

    Packages that are not in the cache yet are compiled now. If the cache cannot be filled or shown, the
    interpreter is returned unchanged.

    Args:
        interpreter: The interpreter and toolchain of the project.
        files: The project's files, of which only the names of imported packages are used.
        sandbox: Compiles the packages, and knows the folder for caches.
        settings: The sandbox limits.

    Raises:
        SandboxError: The sandbox failed.
    """
    go = interpreter.toolchain
    if go is None or "GOCACHE" not in go.variables:
        return interpreter
    if not isinstance(sandbox, SupportsCacheDir) or sandbox.cache is None:
        return interpreter
    if (await sandbox.capabilities()).level not in MOUNTABLE_LEVELS or "'" in go.program:
        return interpreter
    folder = sandbox.cache / "go-library" / _cache_key(go, sandbox.name)
    try:
        _create_cache(folder, go)
        able = _add_mount(interpreter, go, folder)
        known = {*(folder / "packages").read_text("utf-8").split()}
        lacking = _imported_packages(files) - known
        if lacking and not await _compile_packages(folder, lacking, able, sandbox, settings):
            return able if known else interpreter
        if lacking:
            _write(folder / "packages", "\n".join(sorted(known | lacking)).encode())
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile):
        return interpreter
    return able


def _imported_packages(files: Mapping[str, bytes]) -> set[str]:
    """Return names that may be packages of the standard library; Go itself decides which are."""
    sources = [text for path, text in files.items() if path.endswith(".go")]
    names = {name.decode() for text in sources for name in IMPORT.findall(text)}
    names = {name for name in names if not EXCLUDED_NAMES & {*name.split("/")}}
    papers = [text for path, text in files.items() if path.rpartition("/")[2] == "go.mod"]
    more = COMMON_PACKAGES if any(REQUIRES.search(text) for text in papers) else ()
    return {"testing", *more, *sorted(names)[:MAX_GO_PACKAGES]}


def _cache_key(go: Toolchain, wall: str) -> str:
    """Return a cache name that is unique per compiler, sandbox and build settings."""
    real = Path(go.program).resolve()
    facts = [str(real), real.stat().st_size, real.stat().st_mtime_ns, wall, sorted(go.variables.items())]
    facts += [hashlib.sha256(content).hexdigest() for content in _vouching_files(go).values()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _vouching_files(go: Toolchain) -> dict[str, bytes]:
    """Return the files with which package `testing` is compiled for verdicts, at their paths in a run."""
    found: dict[str, bytes] = {}
    for runner in LANGUAGES[go.language].runners:
        own = runner.attestation.files(go.program, f"{BOX}/{PRIVATE_FOLDER}") if runner.attestation else {}
        found |= {f"{PRIVATE_FOLDER}/{name}": content for name, content in own.items()}
    return found


def _add_mount(interpreter: Interpreter, go: Toolchain, folder: Path) -> Interpreter:
    folders, shown = (f"{MOUNT_POINT}/bin", *go.folders), {**go.shown, str(folder): MOUNT_POINT}
    return replace(interpreter, toolchain=replace(go, folders=folders, shown=shown))


def _create_cache(folder: Path, go: Toolchain) -> None:
    """Create an empty cache, with the script that links it into a run's own cache and then starts Go."""
    if (folder / "packages").exists():
        return
    for part in (folder, folder / "bin", *(folder / "entries" / f"{n:02x}" for n in range(256))):
        part.mkdir(parents=True, exist_ok=True)
        part.chmod(0o755)
    (folder / "entries").chmod(0o755)
    _write(folder / "bin" / "go", GO_WRAPPER.format(there=MOUNT_POINT, go=go.program).encode(), mode=0o755)
    _write(folder / "packages", b"")


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file atomically, because other processes may be reading it."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


async def _compile_packages(
    folder: Path, names: Iterable[str], able: Interpreter, sandbox: Sandbox, settings: SandboxSettings
) -> bool:
    """Compile packages in several rounds, and return whether all of them are done.

    One run can bring back only a limited number of bytes.
    """
    program = resources.files(__package__).joinpath(PROGRAM).read_bytes()
    plan = json.dumps({"packages": sorted(names)}).encode()
    request = RunRequest(
        argv=(able.executable, "-I", "-S", "-B", f"{BOX}/{PROGRAM}"),
        files={PROGRAM: program, PLAN: plan, **(_vouching_files(able.toolchain) if able.toolchain else {})},
        env=program_environment(able, BOX),
        mounts=mounts_for_interpreter(able),
        limits=make_test_limits(settings, GO_COMPILE_TIMEOUT_S, "go"),
        collect=(ENTRIES, STATE),
    )
    for _ in range(GO_COMPILE_ROUNDS):
        result = await sandbox.run(request)
        left = -1
        with suppress(ValueError):
            left = int(json.loads(result.files.get(STATE, b"-1")))
        if left < 0 or ENTRIES not in result.files:
            return False
        _add_entries(folder / "entries", result.files[ENTRIES])
        if left == 0:
            return True
    return False


def _add_entries(entries: Path, packed: bytes) -> None:
    """Add new entries; existing ones stay, because other processes may be reading them."""
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        found = [info for info in archive.infolist() if ENTRY.fullmatch(info.filename)]
        if sum(info.file_size for info in found) > MAX_GO_CACHE_BYTES:
            return
        for info in sorted(found, key=lambda info: info.filename[-1], reverse=True):  # an -a names a -d
            if not (entries / info.filename).exists():
                _write(entries / info.filename, archive.read(info))
