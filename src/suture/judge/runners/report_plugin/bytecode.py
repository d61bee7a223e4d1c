"""Bringing back the bytecode that Python and pytest compiled, so that later runs can reuse it."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

SOURCE_TIMESTAMP_S = 946684800
"""The time stamp that every source file gets, so that bytecode of an earlier run is accepted."""
MAX_FILES, MAX_BYTES = 4000, 16 << 20
"""Maximum bytes of a project's bytecode; more is not collected. Chosen by judgement; not measured."""


def backdate(sources: list[str]) -> None:
    """Give source files the same time stamp in every run: Python accepts bytecode by time stamp and size."""
    for path in sources:
        with suppress(OSError):
            os.utime(path, (SOURCE_TIMESTAMP_S, SOURCE_TIMESTAMP_S))


def save_bytecode(sources: list[str], output_path: str) -> None:
    """Write the bytecode of some sources to one file: a line of JSON, followed by the contents."""
    sys.dont_write_bytecode = True
    tag = "." + str(sys.implementation.cache_tag)
    cached_names = {}  # type: dict[str, list[str]]
    index, contents, size = [], [], 0
    for path in sources:
        folder, source_name = os.path.split(path)
        cache = os.path.join(folder, "__pycache__")
        if cache not in cached_names:
            cached_names[cache] = os.listdir(cache) if os.path.isdir(cache) else []
        for name in cached_names[cache]:
            if name.startswith(source_name[: -len(".py")] + tag) and name.endswith(".pyc"):
                with open(os.path.join(cache, name), "rb") as file:
                    contents.append(file.read(MAX_BYTES))
                index.append([path, name, len(contents[-1])])
                size += len(contents[-1])
        if size > MAX_BYTES or len(index) > MAX_FILES:
            return
    with open(output_path, "wb") as file:
        file.write(json.dumps(index).encode("ascii") + b"\n" + b"".join(contents))
