"""The tools: heal, write, verify, show."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import InputRequiredResult, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError

from suture.api import Review, pending_review
from suture.api.past_runs import find_run_folder
from suture.core.ledger import RunFolder, get_run_state, last_of, load_result, read_ledger
from suture.core.ledger.kinds import CertificateWritten
from suture.core.safe_files import read_stored
from suture.errors import SutureError, UsageError
from suture.interfaces.jobs import JobKind
from suture.interfaces.mcp.client_questions import (
    QuestionState,
    can_be_asked,
    has_roots,
    read_question_state,
    request_review_answer,
    request_roots,
    roots_as_paths,
)
from suture.interfaces.mcp.server_context import (
    ServerContext,
    require_allowed_folder,
    run_tool_job,
    tool_error,
)
from suture.interfaces.narrative.event_text import render_event
from suture.interfaces.narrative.run_story import run_as_json
from suture.interfaces.narrative.wording import EVIDENCE_TEXTS
from suture.loop import list_recipes

MOST_STEPS = 200
Call = Context[Any, Any]
Autonomy = Annotated[
    Literal["full_auto", "review_repairs", "review_all"] | None,
    Field(description="When the user is asked: never, before repairs, or before each round and the end."),
]
Recipe = Annotated[str | None, Field(description="How to go about it, such as adaptive or greedy.")]
Seconds = Annotated[float | None, Field(gt=0, description="The most wall-clock seconds.")]
Run = Annotated[str, Field(description="A run's id; `last` is the newest.")]
RUN = re.compile(r"last|[0-9]{8}-[0-9]{9}-[0-9a-f]{6}")
LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WORKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


def add_tools(server: MCPServer[Any], door: ServerContext) -> None:
    """Give a server its tools."""

    @server.tool(annotations=WORKS)
    async def heal(
        call: Call,
        path: Annotated[str, Field(description="The project's folder, absolute.")],
        test: Annotated[str | None, Field(description="What must pass; else what the files show.")] = None,
        hint: Annotated[str, Field(description="What is known of the fault; a model reads it.")] = "",
        only: Annotated[list[str], Field(description="Globs of the files that may change.")] = [],  # noqa: B006
        protect: Annotated[list[str], Field(description="Globs of files that stay.")] = [],  # noqa: B006
        recipe: Recipe = None,
        autonomy: Autonomy = None,
        seconds: Seconds = None,
    ) -> RunReport | InputRequiredResult:
        """Repair a project until its tests pass, in a sandbox; answers the verified diff and its proof.

        Nothing in the project is changed: apply the diff yourself.
        """
        asked = read_question_state(call)
        roots = door.roots
        if has_roots(call):
            named = await request_roots(call, asked)
            if isinstance(named, InputRequiredResult):
                return named
            asked = QuestionState(roots=named, run=asked.run, key=asked.key)
            roots = roots_as_paths(named)
        project = require_allowed_folder(path, roots)
        request = {"path": str(project), "test": test, "words": hint, "only": only, "protect": protect}
        return await _worked(
            door, call, "heal", request, asked, tool_settings(door, recipe, autonomy, seconds)
        )

    @server.tool(annotations=WORKS)
    async def write(
        call: Call,
        task: Annotated[str, Field(min_length=1, description="What is wanted, with examples of it.")],
        asserts: Annotated[str, Field(description="Plain asserts that must hold.")] = "",
        entry_point: Annotated[str | None, Field(description="The name to define.")] = None,
        recipe: Recipe = None,
        autonomy: Autonomy = None,
        seconds: Seconds = None,
    ) -> RunReport | InputRequiredResult:
        """Write new Python code until its checks pass, in a sandbox; answers it and what it is worth."""
        request = {"task": task, "asserts": asserts, "entry_point": entry_point}
        flags = tool_settings(door, recipe, autonomy, seconds)
        return await _worked(door, call, "write", request, read_question_state(call), flags)

    @server.tool(annotations=LOOKS)
    async def verify(call: Call, run: Run) -> VerificationReport:
        """Prove a healed run's certificate anew, in a clean sandbox and without a model."""
        folder = find_requested_run(door, run)
        _, end = await run_tool_job(door, call, "verify", {}, run=folder.id)
        return VerificationReport(
            run=folder.id, ok=bool(end.answer["ok"]), findings=list(end.answer["findings"])
        )

    @server.tool(annotations=LOOKS)
    async def show(run: Run) -> RunReport:
        """Tell a run: how it stands, what came of it, and what happened step by step."""
        folder = find_requested_run(door, run)
        try:
            lines = [
                line for event in read_ledger(folder.ledger_path).events if (line := render_event(event))
            ]
            return describe_run(folder, pending_review(folder.path)).model_copy(
                update={"steps": lines[-MOST_STEPS:]}
            )
        except SutureError as fault:
            raise tool_error(fault) from fault


def find_requested_run(door: ServerContext, run: str) -> RunFolder:
    """The folder of a run; a client names no folders of this machine.

    Raises:
        ToolError: There is no such run.
    """
    if not RUN.fullmatch(run):
        raise tool_error(
            UsageError(f"{run!r:.80} is no run's id", remedy="last, or an id that suture://runs lists")
        )
    try:
        return find_run_folder(run, door.settings)
    except SutureError as fault:
        raise tool_error(fault) from fault


def tool_settings(
    door: ServerContext, recipe: str | None, autonomy: str | None, seconds: float | None
) -> dict[str, object]:
    """The settings that a call chooses, within the server's own.

    Raises:
        ToolError: There is no such recipe.
    """
    from mcp.server.mcpserver.exceptions import ToolError

    if recipe is not None and recipe not in list_recipes():
        raise ToolError(f"there is no recipe {recipe!r:.80}; there are: {', '.join(list_recipes())}")
    most = door.settings.budget.seconds
    given = {
        "loop.recipe": recipe,
        "loop.autonomy": autonomy,
        "budget.seconds": min(seconds, most) if seconds is not None else None,
    }
    return {name: value for name, value in given.items() if value is not None}


async def _worked(
    door: ServerContext,
    call: Call,
    kind: JobKind,
    request: dict[str, Any],
    asked: QuestionState,
    flags: dict[str, object],
) -> RunReport | InputRequiredResult:
    """A run to its end, its user asked where it asks; one that nobody answers is told as waiting."""
    if asked.run:
        folder = find_requested_run(door, asked.run)
    else:
        folder, _ = await run_tool_job(door, call, kind, request, flags=flags)
    while (question := pending_review(folder.path)) is not None and can_be_asked(call):
        try:
            said = await request_review_answer(call, question, asked)
        except ValidationError:
            said = None  # it is no answer to this question
        if isinstance(said, InputRequiredResult):
            return said
        if said is None:
            break
        folder, _ = await run_tool_job(door, call, "resume", {"answer": _plain(said)}, run=folder.id)
    return describe_run(folder, question)


def _plain(said: BaseModel) -> dict[str, Any]:
    plain = said.model_dump()
    if plain.get("choice") == "redirect" and not plain.get("hint", "").strip():
        plain["choice"] = "reject"  # there is nothing to tell the model
    return plain


MOST_DIFF_BYTES = 2**20
"""A longer one is a resource: an agent that is handed megabytes has no room left to think."""


class RunReport(BaseModel):
    """A run, as a tool tells it."""

    run: str = Field(description="Its id.")
    state: str = Field(description="`ended`, `waiting`, `running` or `stopped`.")
    outcome: str = Field(default="", description="Such as healed, nothing_to_heal, not_healed.")
    reason: str = ""
    evidence: str = Field(default="", description="What the verdict is worth.")
    diff: str = Field(default="", description="The change; nothing of yours was changed.")
    files: dict[str, str] = Field(default={}, description="New code, path to text.")
    certificate: str = Field(default="", description="The resource that proves it; check it with `verify`.")
    question: str = Field(default="", description="What it waits for an answer to.")
    spend: dict[str, Any] = {}
    steps: list[str] = Field(default=[], description="What happened, where asked for.")


class VerificationReport(BaseModel):
    """What a replay of a certificate found out."""

    run: str
    ok: bool
    findings: list[dict[str, Any]]


def describe_run(folder: RunFolder, question: Review | None = None) -> RunReport:
    """A run as it stands.

    Raises:
        StorageError: Its folder is damaged.
    """
    plain, reading = run_as_json(folder), read_ledger(folder.ledger_path)
    result = load_result(folder)
    wrote = result is not None and result.candidate is not None and not _is_heal(folder)
    certified = last_of(reading.events, CertificateWritten) is not None
    return RunReport(
        run=folder.id,
        state=get_run_state(folder, reading),
        outcome=plain["outcome"] or "",
        reason=plain["reason"] or "",
        evidence=EVIDENCE_TEXTS[result.verdict.evidence] if result is not None and result.verdict else "",
        diff=read_run_diff(folder),
        files=dict(result.candidate.files) if wrote and result is not None and result.candidate else {},
        certificate=f"suture://runs/{folder.id}/certificate" if certified else "",
        question=question.question if question is not None else "",
        spend={name: value for name, value in plain["spend"].items() if not name.startswith("by_")},
    )


def read_run_diff(folder: RunFolder) -> str:
    """The run's diff; empty where there is none, or too much of it."""
    path = folder.path / "result.diff"
    if not path.is_file() or path.stat().st_size > MOST_DIFF_BYTES:
        return ""
    return read_stored(path, MOST_DIFF_BYTES, "the diff", follow=False).decode("utf-8", "replace")


def _is_heal(folder: RunFolder) -> bool:
    from suture.interfaces.narrative.result_text import is_heal_run

    return is_heal_run(folder)
