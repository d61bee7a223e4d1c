"""How much of accepted code its own tests run."""

from __future__ import annotations

import json
from importlib import resources

from suture.checks.programs import PRIVATE, without_private
from suture.checks.sources.needed_names import module_name
from suture.languages import resolve_command
from suture.proof.changed_coverage import touched, watch_lines
from suture.proof.quality.evaluator import Measured, Subject
from suture.sandbox import BOX, own_interpreter
from suture.workspace import overlay

NO_STATEMENT = "it has no statement"
NO_TEST = "there is no check and no test command"
NOT_LOADED = "the tests started no Python that could be watched"
PROGRAM = f"{PRIVATE}/check_runner.py"
SOURCES = f"{PRIVATE}/checks.json"


class Covered:
    """The share of the statements that run while the tests do, behind the wall. It is no verdict."""

    name = "coverage"

    async def evaluate(self, subject: Subject) -> Measured:
        """Run the test command where there is one, the function-level checks beside the code where not."""
        suite = subject.suite
        files = without_private(overlay(suite.task.files, subject.files))
        own = {path: content for path, content in files.items() if path in subject.files}
        statements = touched({}, own)
        if not statements:
            return Measured(absent=NO_STATEMENT)
        if suite.command is not None:
            interpreter = suite.command.interpreter
            argv = resolve_command(suite.task.test_command, interpreter)
        elif suite.task.checks:
            interpreter = subject.interpreter or own_interpreter()
            argv = (interpreter.executable, f"{BOX}/{PROGRAM}", module_name(suite.task.module))
            files[PROGRAM] = resources.files("suture.proof.quality").joinpath("check_runner.py").read_bytes()
            files[SOURCES] = json.dumps([check.source for check in suite.task.checks]).encode("ascii")
        else:
            return Measured(absent=NO_TEST)
        ran = await watch_lines(argv, files, statements, suite, interpreter)
        if ran is None:
            return Measured(absent=NOT_LOADED)
        spots = [(path, spot) for path, found in statements.items() for spot in found]
        missed = [(path, spot) for path, spot in spots if not any((path, line) in ran for line in spot)]
        return Measured(
            values={"statement_coverage": 1 - len(missed) / len(spots)},
            findings=tuple(f"{path}:{spot.start}: no test runs it" for path, spot in missed),
        )
