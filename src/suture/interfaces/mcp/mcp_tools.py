"""The tools: heal, write, judge, verify and show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import InputRequiredResult, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError

from suture.api import Review, pending_review
from suture.api.past_runs import find_run_folder
from suture.core.ledger import RunFolder, get_run_state, last_payload, load_result, read_ledger
from suture.core.ledger.kinds import CertificateWritten
from suture.core.safe_files import read_state_file, write_text_atomically
from suture.errors import SutureError, UsageError
from suture.interfaces.jobs import JobKind
from suture.interfaces.jobs.job import RUN_ID
from suture.interfaces.mcp.client_questions import (
    ExampleAnswer,
    QuestionState,
    can_be_asked,
    has_roots,
    read_question_state,
    request_review_answer,
    request_roots,
)
from suture.interfaces.mcp.server_context import (
    ServerContext,
    require_allowed_folder,
    run_judge_job,
    run_tool_job,
    tool_error,
)
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.narrative.result_text import is_heal_run
from suture.interfaces.narrative.review_text import render_review_question
from suture.interfaces.narrative.run_story import run_as_json
from suture.interfaces.narrative.wording import describe_evidence
from suture.judge.certificates import locate_judgement
from suture.loop import list_recipes
from suture.loop.review.examples import EXAMPLES_FILE, render_typed_example

MAX_STEPS = 200
"""Lines of a run's story that `show` returns, the newest ones. Chosen by judgement; not measured."""
Call = Context[Any, Any]
Autonomy = Annotated[
    Literal["full_auto", "review_repairs", "review_all"] | None,
    Field(
        description="When to ask the user: never, before repairs, or before each round and about the result."
    ),
]
Recipe = Annotated[str | None, Field(description="The strategy, such as adaptive or greedy.")]
Seconds = Annotated[float | None, Field(gt=0, description="Max wall-clock seconds.")]
Run = Annotated[str, Field(description="A run's id; `last` is the newest.")]
Certified = Annotated[str, Field(description="The id of a run or of a judgement; `last` is the newest run.")]
REQUESTED_RUN = re.compile(rf"last|{RUN_ID}")
"""How a client names a run."""
READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
RUNS_CODE = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
"""Hints for clients: whether a tool changes the state of Suture, as a new run does. No tool changes a project."""
MAX_REPORTED = 50
"""Findings, files and tests of one kind that a judgement lists, for the same reason as `MAX_DIFF_BYTES`."""
MAX_PATCH_CHARS = 4 * 2**20
"""The longest patch that can be judged. Chosen by judgement; not measured."""
MAX_DIFF_BYTES = 2**20
"""A longer diff is only available as a resource: megabytes would fill an agent's context."""


def add_tools(server: MCPServer[Any], context: ServerContext) -> None:
    """Give a server its tools."""

    @server.tool(annotations=RUNS_CODE)
    async def heal(
        call: Call,
        path: Annotated[str, Field(description="The absolute path of the project's folder.")],
        test: Annotated[
            str | None, Field(description="The test command; default: detected from the files.")
        ] = None,
        hint: Annotated[str, Field(description="What is known about the problem; for the model.")] = "",
        only: Annotated[list[str], Field(description="Globs of the only files that may change.")] = [],  # noqa: B006
        protect: Annotated[list[str], Field(description="Globs of files that must not change.")] = [],  # noqa: B006
        recipe: Recipe = None,
        autonomy: Autonomy = None,
        seconds: Seconds = None,
    ) -> RunReport | InputRequiredResult:
        """Repair a project in a sandbox until its tests pass; return the verified diff and its certificate.

        The project itself is not changed: apply the diff yourself.
        """
        found = await _find_project(context, call, path)
        if isinstance(found, InputRequiredResult):
            return found
        project, state = found
        request = {"path": str(project), "test": test, "bug_report": hint, "only": only, "protect": protect}
        flags = tool_settings(context, recipe, autonomy, seconds)
        return await _run_to_end(context, call, "heal", request, state, flags)

    @server.tool(annotations=RUNS_CODE)
    async def write(
        call: Call,
        task: Annotated[str, Field(min_length=1, description="What to write, with examples.")],
        asserts: Annotated[str, Field(description="Plain asserts that must hold.")] = "",
        entry_point: Annotated[str | None, Field(description="The name to define.")] = None,
        recipe: Recipe = None,
        autonomy: Autonomy = None,
        seconds: Seconds = None,
    ) -> RunReport | InputRequiredResult:
        """Write new Python code in a sandbox until its checks pass; return the code and its evidence."""
        request = {"task": task, "asserts": asserts, "entry_point": entry_point, "ask": can_be_asked(call)}
        flags = tool_settings(context, recipe, autonomy, seconds)
        return await _run_to_end(context, call, "write", request, read_question_state(call), flags)

    @server.tool(annotations=READ_ONLY)
    async def judge(
        call: Call,
        path: Annotated[str, Field(description="The absolute path of the project's folder.")],
        base: Annotated[
            str | None,
            Field(
                description="The commit to compare with; default: where this branch left the default branch."
            ),
        ] = None,
        patch: Annotated[
            str | None,
            Field(
                max_length=MAX_PATCH_CHARS, description="A unified diff to judge over the files as they are."
            ),
        ] = None,
        staged: Annotated[bool, Field(description="Judge what is staged, against HEAD.")] = False,
        test: Annotated[
            str | None, Field(description="The test command; default: detected from the files.")
        ] = None,
        protect: Annotated[list[str], Field(description="Globs of further files that decide.")] = [],  # noqa: B006
        certificate: Annotated[
            bool, Field(description="Keep the evidence, so that `verify` can judge again.")
        ] = False,
        seconds: Seconds = None,
    ) -> ChangeReport | InputRequiredResult:
        """Judge a change, whoever made it: run the tests without and with it, and find what games them.

        Call it when you think that you are done. If `ok` is false, correct the code, not the tests.
        """
        if sum((base is not None, patch is not None, staged)) > 1:
            raise ToolError("use at most one of base, patch and staged")
        found = await _find_project(context, call, path)
        if isinstance(found, InputRequiredResult):
            return found
        request = {
            "path": str(found[0]),
            "base": base,
            "patch": patch,
            "staged": staged,
            "test": test,
            "protect": protect,
            "certificate": certificate,
        }
        judgement, end = await run_judge_job(
            context, call, request, tool_settings(context, None, None, seconds)
        )
        report = ChangeReport.from_answer(end.answer)
        if not certificate:
            return report
        write_text_atomically(locate_judgement(judgement, context.home), str(end.answer["certificate"]))
        return report.model_copy(update={"certificate": f"suture://judgements/{judgement}/certificate"})

    @server.tool(annotations=READ_ONLY)
    async def verify(call: Call, run: Certified) -> VerificationReport:
        """Verify the certificate of a healed run or of a judgement again, in a clean sandbox and without a model."""
        run_id = run if find_judgement(context, run) else find_requested_run(context, run).id
        _, end = await run_tool_job(context, call, "verify", {}, run=run_id)
        return VerificationReport(
            run=run_id, ok=bool(end.answer["ok"]), findings=list(end.answer["findings"])
        )

    @server.tool(annotations=READ_ONLY)
    async def show(run: Run) -> RunReport:
        """Show a run: its state, its result, and what happened step by step."""
        folder = find_requested_run(context, run)
        try:
            events = read_ledger(folder.ledger_path).events
            steps = [line for event in events if (line := render_event(event))]
            report = describe_run(folder, pending_review(folder.path))
            return report.model_copy(update={"steps": steps[-MAX_STEPS:]})
        except SutureError as fault:
            raise tool_error(fault) from fault


async def _find_project(
    context: ServerContext, call: Call, path: str
) -> tuple[Path, QuestionState] | InputRequiredResult:
    """Return an allowed folder and the state of the call, or the result that asks for the client's roots."""
    state = read_question_state(call)
    roots = context.roots
    if has_roots(call):
        client_roots = await request_roots(call, state)
        if isinstance(client_roots, InputRequiredResult):
            return client_roots
        state = replace(state, roots=client_roots)
        roots = tuple(map(Path, client_roots))
    return require_allowed_folder(path, roots), state


def find_requested_run(context: ServerContext, run: str) -> RunFolder:
    """Return the folder of a run; clients cannot name folders of this machine."""
    if not REQUESTED_RUN.fullmatch(run):
        raise tool_error(
            UsageError(f"{run!r:.80} is not a run id", remedy="use `last` or an id from suture://runs")
        )
    try:
        # The folder in which a client starts the server says nothing about the project that it asks for.
        return find_run_folder("newest" if run == "last" else run, context.settings)
    except SutureError as fault:
        raise tool_error(fault) from fault


def find_judgement(context: ServerContext, name: str) -> Path | None:
    """Return the file of a judgement's certificate; `None` if none of this id is kept."""
    path = locate_judgement(name, context.home)
    return path if REQUESTED_RUN.fullmatch(name) and path.is_file() else None


def tool_settings(
    context: ServerContext, recipe: str | None, autonomy: str | None, seconds: float | None
) -> dict[str, object]:
    """Return the settings that a call chooses, within the server's limits."""
    if recipe is not None and recipe not in list_recipes():
        raise ToolError(f"there is no recipe {recipe!r:.80}; use one of: {', '.join(list_recipes())}")
    limit_s = context.settings.budget.seconds
    values = {
        "loop.recipe": recipe,
        "loop.autonomy": autonomy,
        "budget.seconds": min(seconds, limit_s) if seconds is not None else None,
    }
    return {name: value for name, value in values.items() if value is not None}


async def _run_to_end(
    context: ServerContext,
    call: Call,
    kind: JobKind,
    request: dict[str, Any],
    state: QuestionState,
    flags: dict[str, object],
) -> RunReport | InputRequiredResult:
    """Run to the end, forwarding questions to the user; an unanswered run is returned as waiting."""
    if state.run:
        folder = find_requested_run(context, state.run)
    else:
        folder, _ = await run_tool_job(context, call, kind, request, flags=flags)
    while (question := pending_review(folder.path)) is not None and can_be_asked(call):
        try:
            answer = await request_review_answer(call, question, state)
        except ValidationError:
            answer = None  # not a valid answer to this question
        if isinstance(answer, InputRequiredResult):
            return answer
        if answer is None:
            break
        answer_values = answer.model_dump()
        if isinstance(answer, ExampleAnswer):
            files = {EXAMPLES_FILE: render_typed_example(answer.example)}
            is_given = bool(answer.example.strip())
            answer_values = {"choice": "edit", "files": files} if is_given else {"choice": "reject"}
        if answer_values["choice"] == "redirect" and not answer_values["hint"].strip():
            answer_values["choice"] = "reject"  # without a hint there is nothing to redirect to
        folder, _ = await run_tool_job(context, call, "resume", {"answer": answer_values}, run=folder.id)
    return describe_run(folder, question)


class RunReport(BaseModel):
    """A run as a tool returns it."""

    run: str = Field(description="The run's id.")
    state: str = Field(description="`ended`, `waiting`, `running` or `stopped`.")
    outcome: str = Field(default="", description="Such as healed, nothing_to_heal, not_healed.")
    reason: str = ""
    evidence: str = Field(default="", description="How the verdict was obtained.")
    diff: str = Field(default="", description="The change; it has not been applied.")
    files: dict[str, str] = Field(default={}, description="New code: path -> text.")
    certificate: str = Field(default="", description="The certificate's resource; verify it with `verify`.")
    question: str = Field(default="", description="The question that the run waits for.")
    spend: dict[str, Any] = {}
    steps: list[str] = Field(default=[], description="What happened, only from `show`.")


class FindingReport(BaseModel):
    """One thing that was found about a change."""

    code: str
    severity: str = Field(description="`reject`, `remark` or `note`.")
    path: str = ""
    line: int = Field(default=0, description="0: none.")
    test: str = ""
    sentence: str


class ChangeReport(BaseModel):
    """The verdict on a change as a tool returns it."""

    outcome: str = Field(description="`accepted`, `accepted_with_remarks`, `rejected` or `not_comparable`.")
    ok: bool = Field(description="Whether the change is accepted, with or without remarks.")
    headline: str = Field(description="The verdict and the gravest finding.")
    reasons: list[str] = Field(description="Why the change is rejected or cannot be compared.")
    findings: list[FindingReport] = Field(description="What was found, the gravest first.")
    left_out: int = Field(default=0, description="Further findings; see `suture judge --explain`.")
    base: str = Field(description="What the change is compared with.")
    files: list[str] = Field(description="The changed files.")
    passed: int = Field(description="How many tests pass with the change.")
    tests: dict[str, list[str]] = Field(
        description="Tests by what happened to them, such as fixed and newly_failing."
    )
    changed_statements: int = 0
    lines_not_run: dict[str, list[int]] = Field(
        default={}, description="Path -> changed lines that no test runs."
    )
    mistakes: int = Field(default=0, description="Deliberate mistakes that were tried in the changed lines.")
    mistakes_noticed: int = 0
    certificate: str = Field(
        default="", description="The certificate's resource; verify it with `verify` and the id in it."
    )
    seconds: float

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> ChangeReport:
        """Return the report of a job's answer, shortened so that it does not fill an agent's context."""
        findings = [FindingReport(**_pick(found, FindingReport)) for found in answer["findings"]]
        reasons = [found.sentence for found in findings if found.severity == "reject"]
        if not answer["ok"] and not reasons:
            reasons = [answer["headline"]]
        tests, guards = answer["tests"], answer["guards"]
        return cls(
            **_pick(answer, cls, without=("findings", "files", "tests", "passed", "certificate")),
            reasons=reasons[:MAX_REPORTED],
            findings=findings[:MAX_REPORTED],
            left_out=max(0, len(findings) - MAX_REPORTED),
            files=answer["files"][:MAX_REPORTED],
            passed=len(tests["passed"]),
            tests={name: ids[:MAX_REPORTED] for name, ids in tests.items() if name != "passed" and ids},
            changed_statements=guards["changed"],
            lines_not_run=dict(list(guards["not_run"].items())[:MAX_REPORTED]),
            mistakes=guards["mistakes"],
            mistakes_noticed=guards["noticed"],
        )


def _pick(values: Mapping[str, Any], cls: type[BaseModel], without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the values whose names are fields of a model."""
    return {name: value for name, value in values.items() if name in cls.model_fields and name not in without}


class VerificationReport(BaseModel):
    """The findings of a certificate's verification."""

    run: str
    ok: bool
    findings: list[dict[str, Any]]


def describe_run(folder: RunFolder, question: Review | None = None) -> RunReport:
    """Return the current state of a run."""
    run_json, ledger = run_as_json(folder), read_ledger(folder.ledger_path)
    result = load_result(folder)
    files: dict[str, str] = {}
    if result is not None and result.candidate is not None and not is_heal_run(folder):
        files = dict(result.candidate.files)
    evidence = ""
    if result is not None and result.verdict is not None:
        evidence = describe_evidence(result.verdict.evidence, has_diff=bool(result.diff))
    has_certificate = last_payload(ledger.events, CertificateWritten) is not None
    return RunReport(
        run=folder.id,
        state=get_run_state(folder, ledger),
        outcome=run_json["outcome"] or "",
        reason=run_json["reason"] or "",
        evidence=evidence,
        diff=read_run_diff(folder),
        files=files,
        certificate=f"suture://runs/{folder.id}/certificate" if has_certificate else "",
        question=render_review_question(question) if question is not None else "",
        spend={name: value for name, value in run_json["spend"].items() if not name.startswith("by_")},
    )


def read_run_diff(folder: RunFolder) -> str:
    """Return the run's diff; empty if there is none or if it is too long."""
    path = folder.path / "result.diff"
    if not path.is_file() or path.stat().st_size > MAX_DIFF_BYTES:
        return ""
    return read_state_file(path, MAX_DIFF_BYTES, "the diff", follow=False).decode("utf-8", "replace")
