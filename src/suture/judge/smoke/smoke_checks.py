"""Running the smoke checks of a project: a trusted program inside the sandbox starts it and observes it.

`smoke_plan.py` makes the plan, a list of steps. `smoke_program.py` carries it out and writes a signed report.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from suture.core.records import CheckOutcome, CheckStatus, Counterexample, Task, VerdictNote
from suture.core.settings import SandboxSettings
from suture.judge.failures import decode_output, make_ending_failure
from suture.judge.runners.command_line import CommandLine, CommandRun
from suture.judge.runners.signed_lines import verified_events
from suture.judge.sandbox_programs import PRIVATE_FOLDER, drop_private_files
from suture.judge.smoke.smoke_plan import get_step_provenance, list_step_ids, plan_smoke_groups
from suture.judge.tuning import STEPS_SHARE
from suture.project.languages import LANGUAGES, Interpreter, fill_placeholders, resolve_command
from suture.sandbox import BOX, RunResult, Sandbox

PROGRAM_PATH = f"{PRIVATE_FOLDER}/smoke_program.py"
REPORT_PATH = f"{PRIVATE_FOLDER}/smoke_report"


@dataclass(frozen=True, kw_only=True)
class SmokeChecks:
    """The smoke checks of a task with a project.

    Attributes:
        settings: The sandbox limits; all steps together may take as long as a run of the tests.
        interpreter: The interpreter that `python` stands for, and the language's toolchain.
    """

    task: Task
    sandbox: Sandbox
    settings: SandboxSettings
    interpreter: Interpreter

    async def run(self, files: Mapping[str, bytes]) -> CommandRun:
        """Start the project that these files form, and observe it."""
        groups = plan_smoke_groups(self.task)
        result, events = await self._run_plan(files, groups)
        facts = {event["id"]: event["fact"] for event in events if "id" in event}
        outcomes = [_make_outcome(check, facts) for check in list_step_ids(groups)]
        has_finished = any(event.get("end") for event in events)
        if not has_finished and not any(outcome.status == "failed" for outcome in outcomes):
            # The program ended early, so the first step without a result, or the last step, is to blame.
            culprit = next((index for index, outcome in enumerate(outcomes) if not outcome.passed), -1)
            failure = make_ending_failure(outcomes[culprit].check_id, result)
            outcomes[culprit] = replace(outcomes[culprit], status="failed", counterexample=failure)
        return CommandRun(
            outcomes=tuple(outcomes),
            output=decode_output(result),
            notes=(VerdictNote(code="smoke_checks_only"),),
            wall_s=result.wall_s,
        )

    async def run_tests(self, files: Mapping[str, bytes]) -> RunResult:
        """Run the tests of a project with the language's usual command; its exit status is the result."""
        layout = LANGUAGES[self.task.language].layout
        name = self.task.project.name if self.task.project else ""
        argv = resolve_command(fill_placeholders(layout.tests, name, self.task.module), self.interpreter)
        return await self.sandbox.run(replace(self._line.request(drop_private_files(files)), argv=argv))

    @property
    def _line(self) -> CommandLine:
        return CommandLine(task=self.task, settings=self.settings, interpreter=self.interpreter)

    async def _run_plan(
        self, files: Mapping[str, bytes], groups: Sequence[Mapping[str, Any]]
    ) -> tuple[RunResult, list[dict[str, Any]]]:
        key, language = secrets.token_bytes(32), LANGUAGES[self.task.language]
        plan = {
            "report": f"{BOX}/{REPORT_PATH}",
            "key": key.hex(),
            "root": BOX,
            "wall_s": STEPS_SHARE * self.settings.test_timeout_s,
            "crash": language.layout.crash_marker,
            "error_line": language.error_pattern.pattern,
            "groups": [self._resolve_programs(group) for group in groups],
        }
        source = resources.files("suture.judge.smoke").joinpath("smoke_program.py").read_bytes()
        request = self._line.request(
            {**drop_private_files(files), PROGRAM_PATH: source},
            stdin=json.dumps(plan).encode(),
            collect=(REPORT_PATH,),
        )
        argv = (self.interpreter.executable, "-I", "-S", f"{BOX}/{PROGRAM_PATH}")
        result = await self.sandbox.run(replace(request, argv=argv))
        return result, list(verified_events(result.files.get(REPORT_PATH, b""), key))

    def _resolve_programs(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """Return a group with the programs in its commands resolved."""
        resolved = {**group, "steps": [self._resolve_program(step, "argv") for step in group["steps"]]}
        return self._resolve_program(resolved, "serve")

    def _resolve_program(self, entry: Mapping[str, Any], key: str) -> dict[str, Any]:
        if key not in entry:
            return dict(entry)
        return {**entry, key: list(resolve_command(entry[key], self.interpreter))}


def _make_outcome(check: str, facts: Mapping[str, Mapping[str, str]]) -> CheckOutcome:
    """Return the outcome of a step; its fact is empty if it passed, and absent if it was not reached."""
    status: CheckStatus = "missing" if check not in facts else "failed" if facts[check] else "passed"
    fact, counterexample = facts.get(check), None
    if fact:
        counterexample = Counterexample(
            check_id=check,
            call=fact.get("call", ""),
            expected=fact.get("expected", ""),
            actual=fact.get("actual", ""),
            exception=fact.get("exception", ""),
        )
    return CheckOutcome(
        check_id=check,
        status=status,
        provenance=get_step_provenance(check),
        evidence="nonce",
        counterexample=counterexample,
    )
