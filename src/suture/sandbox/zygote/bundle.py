"""What a zygote is made of: sources that it reads from its stdin, so that no file has to be shown to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from suture.sandbox.seccomp import build_filter_for_host

PARTS = (
    "suture.sandbox.execution.supervisor",
    "suture.sandbox.zygote.inside.kernel",
    "suture.sandbox.zygote.inside.child",
    "suture.sandbox.zygote.inside.relay",
    "suture.sandbox.zygote.inside.server",
)
"""In the order in which they import each other; the last one serves."""
PACKAGES = (
    *("suture", "suture.sandbox", "suture.sandbox.execution"),
    *("suture.sandbox.zygote", "suture.sandbox.zygote.inside"),
)


@cache
def read_boot_source() -> str:
    """The zygote's first words."""
    return _read("suture.sandbox.zygote.inside.boot")


def build_bundle(
    modules: Mapping[str, bytes],
    preload: str,
    shown: Sequence[str],
    *,
    namespaces: bool = True,
    emptied: Sequence[str] = (),
    fd_socket: int | None = None,
) -> bytes:
    """What the zygote reads first: its sources, then a frame of settings.

    Args:
        modules: Modules to import before the first run, as a request names them.
        preload: Code to run before the first run.
        shown: The paths of all mounts behind the wall.
        namespaces: Whether each run gets namespaces of its own; else there is but one run.
        emptied: Folders behind the wall that each run covers with nothing.
        fd_socket: The descriptor by which it is given others.
    """
    covered = [path for path in shown if path.startswith("/tmp/")]
    sources = json.dumps([*((name, "") for name in PACKAGES), *((name, _read(name)) for name in PARTS)])
    texts = {_module(path): content.decode("utf-8") for path, content in modules.items()}
    settings = json.dumps(
        {
            "filter": build_filter_for_host().hex(),
            "modules": texts,
            "preload": preload,
            "namespaces": namespaces,
            "covered": covered,
            "emptied": list(emptied),
            "fd_socket": fd_socket,
        }
    )
    return b"".join(
        (
            *(len(sources).to_bytes(4, "big"), sources.encode("ascii")),
            *(b"s", len(settings).to_bytes(4, "big"), settings.encode("ascii")),
        )
    )


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@cache
def _read(name: str) -> str:
    package, _, module = name.rpartition(".")
    return resources.files(package).joinpath(f"{module}.py").read_text("utf-8")
