"""Runs function-level checks beside the code, to watch its lines. What they say is not looked at.

It runs behind the wall in the user's own interpreter: Python 3.8 syntax, and the standard library alone.
"""

from __future__ import annotations

import importlib
import json
import os
import sys


def _run(module_name: str, sources: str) -> None:
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - behind the wall, on whatever Python is there
    names = vars(importlib.import_module(module_name))
    public = {name: value for name, value in names.items() if not name.startswith("__")}
    with open(sources, encoding="ascii") as file:  # noqa: PTH123 - as above
        programs = json.load(file)
    for source in programs:
        try:
            exec(compile(source, "<check>", "exec"), dict(public, __name__="__main__"))
        except BaseException:
            continue  # a failing check has run what it has run


if __name__ == "__main__":
    _run(sys.argv[1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "checks.json"))  # noqa: PTH100, PTH118, PTH120 - as above
