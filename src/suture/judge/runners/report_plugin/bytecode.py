"""What Python and pytest compiled of the project, brought back so that later runs need not do it again."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

WRITTEN_S = 946684800
"""When each source says that it was written, so that code compiled in an earlier run is believed."""
MOST_COMPILED, MOST_COMPILED_BYTES = 4000, 16 << 20


def date(sources: list[str]) -> None:
    """Give each source the same age in every run: Python believes compiled code by that, and by the size."""
    for path in sources:
        with suppress(OSError):
            os.utime(path, (WRITTEN_S, WRITTEN_S))


def keep_compiled(sources: list[str], place: str) -> None:
    """What Python and pytest compiled of some sources, as one file: a line of JSON, then their contents."""
    sys.dont_write_bytecode = True
    tag = "." + str(sys.implementation.cache_tag)
    names = {}  # type: dict[str, list[str]]
    index, contents, size = [], [], 0
    for path in sources:
        folder, name = os.path.split(path)
        cache = os.path.join(folder, "__pycache__")
        if cache not in names:
            names[cache] = os.listdir(cache) if os.path.isdir(cache) else []
        for own in names[cache]:
            if own.startswith(name[: -len(".py")] + tag) and own.endswith(".pyc"):
                with open(os.path.join(cache, own), "rb") as file:
                    contents.append(file.read(MOST_COMPILED_BYTES))
                index.append([path, own, len(contents[-1])])
                size += len(contents[-1])
        if size > MOST_COMPILED_BYTES or len(index) > MOST_COMPILED:
            return
    with open(place, "wb") as file:
        file.write(json.dumps(index).encode("ascii") + b"\n" + b"".join(contents))
