"""The sources that a zygote reads from its stdin, so that no file of Suture has to be mounted for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from suture.sandbox.execution.process import read_source
from suture.sandbox.seccomp import build_filter_for_host

PARTS = (
    "suture.sandbox.execution.supervisor",
    "suture.sandbox.zygote.inside.kernel",
    "suture.sandbox.zygote.inside.child",
    "suture.sandbox.zygote.inside.relay",
    "suture.sandbox.zygote.inside.server",
)
"""The modules of the zygote in import order; the last one serves."""
PACKAGES = (
    "suture",
    "suture.sandbox",
    "suture.sandbox.execution",
    "suture.sandbox.zygote",
    "suture.sandbox.zygote.inside",
)
"""The parent packages of `PARTS`, which become empty modules in the zygote."""


ZYGOTE_ENVIRONMENT = {"LD_BIND_NOW": "1", "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "1"}
"""Environment of a process that is forked from. `LD_BIND_NOW`: otherwise each child repeats the symbol
lookups of its libraries. `MALLOC_ARENA_MAX`: glibc reserves 64 MiB of address space for each thread's arena,
and the limit on address space has room for only some twenty."""


def read_boot_source() -> str:
    """Return the source of the program that loads the zygote."""
    return read_source("suture.sandbox.zygote.inside.boot")


def build_bundle(
    modules: Mapping[str, bytes],
    preload: str,
    mount_targets: Sequence[str],
    *,
    namespaces: bool = True,
    hidden_folders: Sequence[str] = (),
    fd_socket: int | None = None,
) -> bytes:
    """Return what the zygote reads first: its sources, then a frame with its settings.

    Args:
        modules: Modules to import before the first run, as in a request.
        preload: Code to run before the first run.
        mount_targets: The targets of all mounts.
        namespaces: Whether each run gets its own namespaces; otherwise there is only one run.
        hidden_folders: Folders inside the sandbox that each run covers with an empty one.
        fd_socket: The file descriptor of the socket through which the zygote receives descriptors.
    """
    sources = [*((name, "") for name in PACKAGES), *((name, read_source(name)) for name in PARTS)]
    settings = {
        "filter": build_filter_for_host().hex(),
        "modules": {_module(path): content.decode("utf-8") for path, content in modules.items()},
        "preload": preload,
        "namespaces": namespaces,
        # Each run mounts an empty /tmp over these, and then shows them again.
        "covered": [path for path in mount_targets if path.startswith("/tmp/")],
        "hidden_folders": list(hidden_folders),
        "fd_socket": fd_socket,
    }
    return _with_length(sources) + b"s" + _with_length(settings)  # a frame's kind, which is not looked at


def _with_length(value: object) -> bytes:
    text = json.dumps(value).encode("ascii")
    return len(text).to_bytes(4, "big") + text


def _module(path: str) -> str:
    """Return the name by which a file is imported: `a.b` for `a/b.py` and for `a/b/__init__.py`."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
