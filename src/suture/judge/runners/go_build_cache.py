"""A build cache with Go's standard library, compiled once and shown read-only to every run.

Go compiles everything that its cache lacks, and a run's own cache is thrown away because a candidate may have
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
PROGRAM_FILE = "go_build_cache_program.py"
PLAN_FILE = "plan.json"
"""Names the packages to compile."""
ENTRIES_FILE = "entries.zip"
"""Brings the new cache entries back."""
STATE_FILE = "state.json"
"""Brings back how many new entries did not fit into the archive."""
ENTRY_RE = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}-[ad]")
"""The path of a cache entry, `-a` for an action and `-d` for its data, inside the folder of its first byte."""
IMPORT_RE = re.compile(
    rb'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([a-z][a-z0-9/]{0,80})"\s*(?://.*)?$', re.MULTILINE
)
"""An import. Packages of the standard library have short names in lower case; 80 is by judgement."""
EXCLUDED_NAMES = {"all", "builtin", "cgo", "cmd", "internal", "race", "std", "vendor"}
"""Parts of names that mean a set of packages to Go, or packages that a project cannot import."""
REQUIRE_RE = re.compile(rb"^\s*require\b", re.MULTILINE)
"""A line by which a go.mod file asks for third-party modules."""
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
# The linked entries are read-only. With a recent date in trim.txt, Go does not try to delete old ones.
if [ -n "$GOCACHE" ] && [ ! -e "$GOCACHE" ]; then
    cp -rs {library}/entries "$GOCACHE" && date +%s >"$GOCACHE/trim.txt"
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
        files: The project's files, of which only the names of imported packages are used.
    """
    go = interpreter.toolchain
    if go is None or "GOCACHE" not in go.variables:
        return interpreter
    if not isinstance(sandbox, SupportsCacheDir) or sandbox.cache is None:
        return interpreter
    if (await sandbox.capabilities()).level not in MOUNTABLE_LEVELS or "'" in go.program:
        return interpreter
    folder = sandbox.cache / "go-library" / _make_cache_key(go, sandbox.name)
    try:
        _create_cache(folder, go)
        interpreter_with_cache = _add_mount(interpreter, go, folder)
        compiled = {*(folder / "packages").read_text("utf-8").split()}
        missing = _find_imported_packages(files) - compiled
        if missing and not await _compile_packages(
            folder, missing, interpreter_with_cache, sandbox, settings
        ):
            return interpreter_with_cache if compiled else interpreter
        if missing:
            _write(folder / "packages", "\n".join(sorted(compiled | missing)).encode())
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile):
        return interpreter
    return interpreter_with_cache


def _find_imported_packages(files: Mapping[str, bytes]) -> set[str]:
    """Return names that may be packages of the standard library; Go itself decides which are."""
    sources = [text for path, text in files.items() if path.endswith(".go")]
    names = {name.decode() for text in sources for name in IMPORT_RE.findall(text)}
    names = {name for name in names if not EXCLUDED_NAMES & {*name.split("/")}}
    manifests = [text for path, text in files.items() if path.rpartition("/")[2] == "go.mod"]
    has_requirements = any(REQUIRE_RE.search(text) for text in manifests)
    common_packages = COMMON_PACKAGES if has_requirements else ()
    return {"testing", *common_packages, *sorted(names)[:MAX_GO_PACKAGES]}


def _make_cache_key(go: Toolchain, sandbox_name: str) -> str:
    """Return a cache name that is unique per compiler, sandbox and build settings."""
    program = Path(go.program).resolve()
    stat = program.stat()
    facts = [str(program), stat.st_size, stat.st_mtime_ns, sandbox_name, sorted(go.variables.items())]
    facts += [hashlib.sha256(content).hexdigest() for content in _make_attestation_files(go).values()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _make_attestation_files(go: Toolchain) -> dict[str, bytes]:
    """Return the files with which package `testing` is compiled for verdicts, at their paths in a run."""
    attestation_files: dict[str, bytes] = {}
    for runner in LANGUAGES[go.language].runners:
        if runner.attestation is not None:
            files = runner.attestation.files(go.program, f"{BOX}/{PRIVATE_FOLDER}")
            attestation_files |= {f"{PRIVATE_FOLDER}/{name}": content for name, content in files.items()}
    return attestation_files


def _add_mount(interpreter: Interpreter, go: Toolchain, folder: Path) -> Interpreter:
    # The folder of the script comes first, so that `go` means the script. Other variables, such as those of added
    # packages, have another cache: it replaces the one that the interpreter has already.
    programs = f"{MOUNT_POINT}/bin"
    folders = (programs, *(name for name in go.folders if name != programs))
    shown = {source: path for source, path in go.shown.items() if path != MOUNT_POINT}
    shown[str(folder)] = MOUNT_POINT
    return replace(interpreter, toolchain=replace(go, folders=folders, shown=shown))


def _create_cache(folder: Path, go: Toolchain) -> None:
    """Create an empty cache, with the script that links it into a run's own cache and then starts Go."""
    if (folder / "packages").exists():
        return
    # Go keeps an entry in the folder that has the first byte of its name.
    for subfolder in (folder, folder / "bin", *(folder / "entries" / f"{n:02x}" for n in range(256))):
        subfolder.mkdir(parents=True, exist_ok=True)
        subfolder.chmod(0o755)
    (folder / "entries").chmod(0o755)
    _write(folder / "bin" / "go", GO_WRAPPER.format(library=MOUNT_POINT, go=go.program).encode(), mode=0o755)
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
    folder: Path, names: Iterable[str], interpreter: Interpreter, sandbox: Sandbox, settings: SandboxSettings
) -> bool:
    """Compile packages in several rounds, and return whether all of them are done.

    One run can return only a limited number of bytes.
    """
    program = resources.files(__package__).joinpath(PROGRAM_FILE).read_bytes()
    plan = json.dumps({"packages": sorted(names)}).encode()
    request = RunRequest(
        argv=(interpreter.executable, "-I", "-S", "-B", f"{BOX}/{PROGRAM_FILE}"),
        files={
            PROGRAM_FILE: program,
            PLAN_FILE: plan,
            **(_make_attestation_files(interpreter.toolchain) if interpreter.toolchain else {}),
        },
        env=program_environment(interpreter, BOX),
        mounts=mounts_for_interpreter(interpreter),
        limits=make_test_limits(settings, GO_COMPILE_TIMEOUT_S, "go"),
        collect=(ENTRIES_FILE, STATE_FILE),
    )
    for _ in range(GO_COMPILE_ROUNDS):
        result = await sandbox.run(request)
        remaining = -1
        with suppress(ValueError):
            remaining = int(json.loads(result.files.get(STATE_FILE, b"-1")))
        if remaining < 0 or ENTRIES_FILE not in result.files:
            return False
        _add_entries(folder / "entries", result.files[ENTRIES_FILE])
        if remaining == 0:
            return True
    return False


def _add_entries(entries: Path, packed: bytes) -> None:
    """Add new entries; existing ones stay, because other processes may be reading them."""
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        infos = [info for info in archive.infolist() if ENTRY_RE.fullmatch(info.filename)]
        if sum(info.file_size for info in infos) > MAX_GO_CACHE_BYTES:
            return
        # A `-d` file holds the data that an `-a` file refers to, so it must exist first.
        for info in sorted(infos, key=lambda info: info.filename[-1], reverse=True):
            if not (entries / info.filename).exists():
                _write(entries / info.filename, archive.read(info))
