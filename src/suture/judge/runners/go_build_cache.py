"""Go's standard library, compiled once and shown to every run; no file of it was written beside a candidate.

Go compiles anew what its cache lacks, and the cache of a run is thrown away with what a candidate may have
laid there. This one is filled by runs that see no project, is shown read-only, and is linked into the run's.
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
from suture.project.languages import LANGUAGES, Interpreter, Toolchain, program_environment
from suture.sandbox import BOX, CachingSandbox, RunRequest, Sandbox, interpreter_mounts

THERE = "/go-library"
LEVELS = ("namespace", "container", "user_kernel")
"""Walls that show a folder of this machine where we like; another would have to be sent it."""
PROGRAM, PLAN, ENTRIES, STATE = "go_library_program.py", "plan.json", "entries.zip", "state.json"
ENTRY = re.compile(r"[0-9a-f]{2}/[0-9a-f]{64}-[ad]")
IMPORT = re.compile(rb'^\s*(?:import\s+)?(?:[\w.]+\s+)?"([a-z][a-z0-9/]{0,80})"\s*(?://.*)?$', re.MULTILINE)
NOT_OURS = {"all", "builtin", "cgo", "cmd", "internal", "race", "std", "vendor"}
REQUIRES = re.compile(rb"^\s*require\b", re.MULTILINE)
OFTEN = ("crypto/sha256", "database/sql", "encoding/json", "flag", "go/ast", "net/http/httptest", "os/exec")
"""What modules of others need, which nobody looks into; with all that these need themselves."""
MOST_NAMES = 400
"""That files may ask for; the project wrote them, and each is compiled."""
ROUNDS, ROUND_S = 8, 300.0
MOST_BYTES = 512 << 20
"""Of the library once unpacked; it comes from behind the wall, so its size is only a claim."""
START = """#!/bin/sh
# What lies in the library cannot be changed; a date keeps Go from clearing out what is old.
if [ -n "$GOCACHE" ] && [ ! -e "$GOCACHE" ]; then
    cp -rs {there}/entries "$GOCACHE" && date +%s >"$GOCACHE/trim.txt"
fi 2>/dev/null
exec '{go}' "$@"
"""


async def with_library(
    interpreter: Interpreter, files: Mapping[str, bytes], sandbox: Sandbox, settings: SandboxSettings
) -> Interpreter:
    """The same programs with what a project imports of Go's library compiled; made now where it is not there.

    Where it cannot be made or shown, the programs are as they were.

    Args:
        interpreter: The programs.
        files: The project, of which only the names of imported packages are taken.
        sandbox: Where it is compiled, and which knows the folder that it is kept in.
        settings: The wall's limits.

    Raises:
        SandboxError: The wall failed.
    """
    go = interpreter.toolchain
    if go is None or "GOCACHE" not in go.variables:
        return interpreter
    if not isinstance(sandbox, CachingSandbox) or sandbox.cache is None:
        return interpreter
    if (await sandbox.capabilities()).level not in LEVELS or "'" in go.program:
        return interpreter
    folder = sandbox.cache / "go-library" / _key(go, sandbox.name)
    try:
        _found(folder, go)
        able = _shown(interpreter, go, folder)
        known = {*(folder / "packages").read_text("utf-8").split()}
        lacking = _imported(files) - known
        if lacking and not await _fill(folder, lacking, able, sandbox, settings):
            return able if known else interpreter
        if lacking:
            _write(folder / "packages", "\n".join(sorted(known | lacking)).encode())
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile):
        return interpreter
    return able


def _imported(files: Mapping[str, bytes]) -> set[str]:
    """Names that may be packages of the library; Go tells which are."""
    sources = [text for path, text in files.items() if path.endswith(".go")]
    names = {name.decode() for text in sources for name in IMPORT.findall(text)}
    names = {name for name in names if not NOT_OURS & {*name.split("/")}}
    papers = [text for path, text in files.items() if path.rpartition("/")[2] == "go.mod"]
    more = OFTEN if any(REQUIRES.search(text) for text in papers) else ()
    return {"testing", *more, *sorted(names)[:MOST_NAMES]}


def _key(go: Toolchain, wall: str) -> str:
    """One name for each compiler, and for each set of all else that decides what it makes."""
    real = Path(go.program).resolve()
    facts = [str(real), real.stat().st_size, real.stat().st_mtime_ns, wall, sorted(go.variables.items())]
    facts += [hashlib.sha256(content).hexdigest() for content in _vouching(go).values()]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _vouching(go: Toolchain) -> dict[str, bytes]:
    """What package `testing` is compiled with for verdicts, where runs will find it."""
    found: dict[str, bytes] = {}
    for runner in LANGUAGES[go.language].runners:
        own = runner.vouching.files(go.program, f"{BOX}/{PRIVATE_FOLDER}") if runner.vouching else {}
        found |= {f"{PRIVATE_FOLDER}/{name}": content for name, content in own.items()}
    return found


def _shown(interpreter: Interpreter, go: Toolchain, folder: Path) -> Interpreter:
    folders, shown = (f"{THERE}/bin", *go.folders), {**go.shown, str(folder): THERE}
    return replace(interpreter, toolchain=replace(go, folders=folders, shown=shown))


def _found(folder: Path, go: Toolchain) -> None:
    """Make an empty library, with what links it into a run's own cache and then starts Go."""
    if (folder / "packages").exists():
        return
    for part in (folder, folder / "bin", *(folder / "entries" / f"{n:02x}" for n in range(256))):
        part.mkdir(parents=True, exist_ok=True)
        part.chmod(0o755)
    (folder / "entries").chmod(0o755)
    _write(folder / "bin" / "go", START.format(there=THERE, go=go.program).encode(), mode=0o755)
    _write(folder / "packages", b"")


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Lay a file whole or not at all: others may read it now."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


async def _fill(
    folder: Path, names: Iterable[str], able: Interpreter, sandbox: Sandbox, settings: SandboxSettings
) -> bool:
    """Compile packages, some in each run, which may bring back so much; whether all are there."""
    program = resources.files(__package__).joinpath(PROGRAM).read_bytes()
    plan = json.dumps({"packages": sorted(names)}).encode()
    request = RunRequest(
        argv=(able.executable, "-I", "-S", "-B", f"{BOX}/{PROGRAM}"),
        files={PROGRAM: program, PLAN: plan, **(_vouching(able.toolchain) if able.toolchain else {})},
        env=program_environment(able, BOX),
        mounts=interpreter_mounts(able),
        limits=make_test_limits(settings, ROUND_S, "go"),
        collect=(ENTRIES, STATE),
    )
    for _ in range(ROUNDS):
        result = await sandbox.run(request)
        left = -1
        with suppress(ValueError):
            left = int(json.loads(result.files.get(STATE, b"-1")))
        if left < 0 or ENTRIES not in result.files:
            return False
        _lay(folder / "entries", result.files[ENTRIES])
        if left == 0:
            return True
    return False


def _lay(entries: Path, packed: bytes) -> None:
    """Add what is new; what is there stays, as others may be reading it."""
    with zipfile.ZipFile(BytesIO(packed)) as archive:
        found = [info for info in archive.infolist() if ENTRY.fullmatch(info.filename)]
        if sum(info.file_size for info in found) > MOST_BYTES:
            return
        for info in sorted(found, key=lambda info: info.filename[-1], reverse=True):  # an -a names a -d
            if not (entries / info.filename).exists():
                _write(entries / info.filename, archive.read(info))
