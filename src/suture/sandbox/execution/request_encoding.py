"""Check a request on the host, and encode it for the supervisor or a zygote inside the sandbox."""

from __future__ import annotations

import json
import marshal
import math
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from suture.errors import UsageError
from suture.sandbox.contract import BOX, LIBRARY, RunRequest
from suture.sandbox.execution.supervisor import MAX_REQUEST_FRAME_BYTES, MIB
from suture.sandbox.tuning import MAX_COLLECTED_BYTES

MAX_NAME_BYTES = 255
"""Maximum length of a file name on Linux (`NAME_MAX`)."""
MAX_PATH_BYTES = 4000
"""Below `PATH_MAX` (4096), which also counts the folder in front."""
PAGE_BYTES = 4096
"""A tmpfs stores whole pages."""
MAX_ARGUMENT_BYTES = 128 << 10
"""Maximum length of a single argument or variable (`MAX_ARG_STRLEN`)."""
PLAIN_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}/){0,30}[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""Matches nearly all paths of projects, none of which needs the other checks."""
BASE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": BOX, "TMPDIR": "/tmp", "LANG": "C.UTF-8"}
"""Variables that every program gets."""


def encode_request(request: RunRequest) -> bytes:
    """Check a request and return the bytes that `supervisor.py` reads.

    Raises:
        UsageError: See `check_and_flatten`.
    """
    files = {path: bytes(content) for path, content in request.files.items()}
    return marshal.dumps({**check_and_flatten(request), "files": files})


def encode_for_zygote(request: RunRequest, *, forked: bool = False) -> bytes:
    """Check a request and return the content of a zygote's frame.

    It consists of the length of the head in 4 bytes, the head in JSON, and the files one after another.

    Args:
        forked: Whether the zygote is the interpreter that `argv` names, and runs the module itself.

    Raises:
        UsageError: See `check_and_flatten`; or the request is longer than a frame.
    """
    sizes = [(path, len(content)) for path, content in request.files.items()]
    head = json.dumps({**check_and_flatten(request), "files": sizes, "forked": forked}).encode("ascii")
    size = 4 + len(head) + sum(length for _, length in sizes)
    if size > MAX_REQUEST_FRAME_BYTES:
        raise UsageError(
            f"the request has {size / MIB:.1f} MiB, and a warm sandbox accepts "
            f"{MAX_REQUEST_FRAME_BYTES / MIB:g} MiB",
            remedy="leave large files out; or, with bubblewrap, set sandbox.mode = 'cold'",
        )
    return b"".join((len(head).to_bytes(4, "big"), head, *request.files.values()))


def as_program_request(request: RunRequest, executable: str, box: str = BOX) -> RunRequest:
    """Turn a request for Python code into one for a program, with the code's modules among its files.

    A request that already names a program is returned unchanged.

    Args:
        executable: The path of the Python interpreter.
        box: The folder in which the files will be.
    """
    if request.python is None:
        return request
    library = f"{box}/{LIBRARY}"
    add_library = f"import sys; sys.path.insert(0, {library!r}); del sys\n" if request.modules else ""
    module_files = {f"{LIBRARY}/{name}": content for name, content in request.modules.items()}
    return replace(
        request,
        argv=(executable, "-I", "-S", "-B", "-c", add_library + request.python),
        python=None,
        modules={},
        files={**request.files, **module_files},
    )


def check_and_flatten(request: RunRequest) -> dict[str, Any]:
    """Check a request and return it as plain values, without the contents of its files.

    Raises:
        UsageError: The command is empty or impossible; a path is absolute, leads upwards or is too long; a
            file is also a folder; a watched path is not a file of the request; or the files do not fit into the
            sandbox's folder.
    """
    _check_program(request)
    environment = {**BASE_ENVIRONMENT, **request.env}
    _check_strings((f"{name}={value}" for name, value in environment.items()), "environment variable")
    if any(not name or "=" in name for name in environment):
        raise UsageError("an environment variable has no usable name")
    _check_files(request)
    for path in request.collect:
        _check_path(path)
    unknown = set(request.watched) - request.files.keys()
    if unknown:
        raise UsageError(f"a path is watched that is no file of the request: {min(unknown)!r}")
    return {
        "argv": list(request.argv),
        "python": request.python,
        "env": environment,
        "collect": list(request.collect),
        "watched": list(request.watched),
        "collect_bytes": MAX_COLLECTED_BYTES,
        "limits": {**asdict(request.limits), "cpu_s": math.ceil(request.limits.cpu_s)},
    }


def _check_program(request: RunRequest) -> None:
    """Check what is to be run: a program, or Python code."""
    if request.modules and request.python is None:
        raise UsageError("modules are only possible with Python code")
    if request.python is not None:
        if request.argv:
            raise UsageError("a request has both a program and Python code", remedy="leave argv empty")
        _check_strings((request.python,), "piece of Python code")  # a cold sandbox passes it as an argument
        return
    _check_strings(request.argv, "argument")
    if not request.argv or not request.argv[0]:
        raise UsageError("there is no program to run", remedy="name one in argv")


def _check_strings(strings: Iterable[str], kind: str) -> None:
    """Check that the kernel accepts strings as arguments or variables."""
    for string in strings:
        try:
            encoded = os.fsencode(string)
        except UnicodeEncodeError as fault:
            raise UsageError(f"an {kind} cannot be encoded: {string!r}") from fault
        if b"\0" in encoded:
            raise UsageError(f"an {kind} holds a NUL byte: {string!r}")
        if len(encoded) >= MAX_ARGUMENT_BYTES:
            raise UsageError(
                f"an {kind} is too long: {len(encoded)} bytes", remedy="pass it in a file or through stdin"
            )


def _check_files(request: RunRequest) -> None:
    """Check the paths of the files, and whether the folder can hold them."""
    for path in request.files:
        if not PLAIN_PATH.fullmatch(path):
            _check_path(path)
    folders = {path.rpartition("/")[0] for path in request.files}
    folders.update([folder[:index] for folder in folders for index, char in enumerate(folder) if char == "/"])
    size = sum([-(-len(content) // PAGE_BYTES) for content in request.files.values()]) * PAGE_BYTES
    conflicts = folders & request.files.keys()
    if conflicts:
        raise UsageError(f"{min(conflicts)!r} is both a file and a folder")
    if size > request.limits.disk_mb << 20:
        raise UsageError(
            f"the files need {size >> 20} MiB, and the sandbox's folder holds {request.limits.disk_mb} MiB",
            remedy="raise sandbox.disk_mb, or leave large files out",
        )


def _check_path(path: str) -> None:
    """Check a path inside the sandbox, which a candidate may have written."""
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as fault:
        raise UsageError(f"a path cannot be encoded: {path!r}") from fault
    parts = encoded.split(b"/")
    if encoded.startswith(b"/"):
        raise UsageError(f"a path inside the sandbox must be relative: {path!r}")
    if b"" in parts or b"." in parts or b".." in parts or b"\0" in encoded:
        raise UsageError(f"a path has empty, '.', '..' or NUL parts: {path!r}")
    if len(encoded) > MAX_PATH_BYTES or max(map(len, parts)) > MAX_NAME_BYTES:
        raise UsageError(f"a path is too long: {path[:80]!r}...")
