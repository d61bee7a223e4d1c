"""Run function-level checks in the process of the code, to record its lines; their outcomes are ignored.

This runs inside the sandbox in the user's interpreter: Python 3.8 syntax, and the standard library only.
"""

from __future__ import annotations

import importlib
import json
import os
import sys


def run_checks(module_name: str, sources_path: str) -> None:
    """Import the module, and run each check of a JSON list of programs in its names."""
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - inside the sandbox, on any Python
    names = vars(importlib.import_module(module_name))
    public = {name: value for name, value in names.items() if not name.startswith("__")}
    with open(sources_path, encoding="ascii") as file:  # noqa: PTH123 - as above
        programs = json.load(file)
    for source in programs:
        try:
            exec(compile(source, "<check>", "exec"), dict(public, __name__="__main__"))
        except BaseException:
            continue  # a failing check counts with the lines that it ran


if __name__ == "__main__":
    run_checks(sys.argv[1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "checks.json"))  # noqa: PTH100, PTH118, PTH120 - as above
