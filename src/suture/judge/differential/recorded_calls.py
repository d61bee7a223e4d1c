"""Calls of functions and methods that can be made again, as the trial processes record and make them."""

from __future__ import annotations

import re

PlannedCall = tuple[str, str, str]
"""Path, name, and arguments as the source of a tuple. The path is empty for the task's own module.

`trials/inside/call_names.py` describes the names of methods and keywords."""


def get_function_name(name: str) -> str:
    """Return the name of a planned call's function or method alone, such as `Price.label` for `Price.label/1*width`."""
    return re.split("[/*]", name, maxsplit=1)[0]


def count_constructor_arguments(name: str) -> int:
    """Return how many of a planned call's arguments, the first ones, make the object whose method it calls."""
    count, *words = name.partition("*")[0].partition("/")[2].split(",")
    return int(count or 0) + len(words)
