"""The bodies of requests and responses, as in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from suture.core.ledger.run_state import Doubt
from suture.core.records import ProjectKind
from suture.interfaces.jobs.job import RUN_ID

RUN_ID_PATTERN = f"^{RUN_ID}$"
Text = Annotated[str, StringConstraints(max_length=200_000)]
Patch = Annotated[str, StringConstraints(max_length=2_000_000)]
Line = Annotated[str, StringConstraints(max_length=4_000)]
Lines = Annotated[list[Line], Field(max_length=200)]
"""Texts of requests. These lengths, and the maxima of numbers below, are far above any use; chosen by judgement, not
measured."""


class RunChoices(BaseModel):
    """Choices of every request for a run."""

    model_config = ConfigDict(extra="forbid")
    recipe: Line | None = Field(default=None, description="A name from GET /v1/recipes.")
    model: Line | None = Field(default=None, description="A name from GET /v1/models, or `none`.")
    autonomy: Literal["full_auto", "review_repairs", "review_all"] | None = None
    attempts: int | None = Field(default=None, ge=1, le=10_000)
    tokens: int | None = Field(default=None, ge=1, le=10**9)
    money: float | None = Field(default=None, gt=0, le=10**6, description="US dollars.")
    seconds: float | None = Field(default=None, gt=0, le=10**6)


class WriteRequest(RunChoices):
    """Write new code, as `suture run` does."""

    kind: Literal["write"]
    task: Annotated[Text, Field(min_length=1)] = Field(
        description="What to write, with examples if possible.",
        examples=["Write a function double(n). For example: double(4) == 8"],
    )
    asserts: Text = Field(default="", description="Plain asserts as text.")
    entry_point: Line | None = Field(default=None, description="The name to define.")
    language: Literal["python", "node", "typescript", "go"] | None = Field(
        default=None, description="The language to write; default: Python."
    )
    project: ProjectKind | None = Field(
        default=None, description="The kind of project to make; default: one function or module."
    )
    ask: bool = Field(
        default=False,
        description="Whether to wait for an answer if neither a test nor an example says what is right.",
    )


class HealProjectRequest(RunChoices):
    """Repair a project: a folder below an allowed root, an uploaded archive, or a git repository."""

    kind: Literal["heal"]
    path: Line | None = Field(default=None, description="The project's folder, below one of serve.roots.")
    archive: Line | None = Field(default=None, description="A name returned by POST /v1/archives.")
    git: Line | None = Field(default=None, description="A repository URL that serve.git allows.")
    ref: Line | None = Field(default=None, description="A branch or tag; default: the default branch.")
    test: Line | None = Field(default=None, description="The test command; default: detected from the files.")
    protect: Lines = Field(default=[], description="Globs of files that must not change.")
    only: Lines = Field(default=[], description="Globs of the only files that may change.")
    since: Line | None = Field(default=None, description="The oldest commit that may have broken it.")
    bug_report: Text = Field(default="", description="What is known about the problem; for the model.")


NewRunRequest = Annotated[WriteRequest | HealProjectRequest, Field(discriminator="kind")]


class JudgeRequest(BaseModel):
    """Judge a change of a project: by default its working tree."""

    model_config = ConfigDict(extra="forbid")
    path: Line = Field(description="The project's folder, below one of serve.roots.")
    base: Line | None = Field(
        default=None,
        description="The commit to compare with; default: where the branch left the default branch.",
    )
    patch: Patch | None = Field(
        default=None, description="A unified diff to judge over the files as they are."
    )
    staged: bool = Field(default=False, description="Judge what is staged, against HEAD.")
    test: Line | None = Field(default=None, description="The test command; default: detected from the files.")
    protect: Lines = Field(default=[], description="Globs of further files that decide.")
    certificate: bool = Field(default=False, description="Return a certificate for `suture verify`, too.")
    seconds: float | None = Field(default=None, gt=0, le=10**6, description="Max wall-clock seconds.")


class ForkRequest(RunChoices):
    """Start a new run from a step of another run."""

    at: int | None = Field(
        default=None,
        ge=0,
        le=10**6,
        description="The number of executed decisions. By default, the run starts after a search that found nothing.",
    )
    hint: Text = Field(default="", description="A hint for the model from there on.")
    candidate: dict[Line, Text] = Field(default={}, description="Files to judge first: path -> text.")


class ReviewAnswerRequest(BaseModel):
    """The answer to the question that a run waits for."""

    model_config = ConfigDict(extra="forbid")
    choice: Literal["approve", "edit", "redirect", "reject", "abort", "first", "second", "neither", "unsure"]
    hint: Text = Field(default="", description="For `redirect`: a hint for the model.")
    files: dict[Line, Text] = Field(default={}, description="For `edit`: path -> text.")
    key: Line = Field(default="", description="The question's key, to answer only that question.")


class RunAccepted(BaseModel):
    """A run and its state."""

    run: str = Field(description="The run's id; see GET /v1/runs/{run}.")
    state: str = Field(description="`queued`, `running`, `waiting`, `stopped`, `ended` or `refused`.")


class PullRequest(BaseModel):
    """The pull request with a run's change, or whether one can be opened."""

    state: Literal["opened", "possible", "no_token"] = Field(
        description="`possible`: an admin can open one; `no_token`: the server has no token of GitHub."
    )
    address: str = Field(default="", description="Where it can be viewed.")


class RunDetails(BaseModel):
    """The current state of a run."""

    run: str
    state: str
    outcome: str | None = None
    reason: str | None = None
    caller: str | None = Field(default=None, description="Its owner: the caller who started it here.")
    error: dict[str, Any] | None = Field(default=None, description="Why its job ended without an outcome.")
    spend: dict[str, Any] = {}
    replies_without_code: int = Field(
        default=0, description="How many replies brought no code, or that of an earlier candidate."
    )
    question: dict[str, Any] | None = Field(default=None, description="The question that the run waits for.")
    title: str = Field(default="", description="What a reader knows the run by.")
    kind: str = ""
    task: str = Field(default="", description="The statement of the task.")
    project: str = Field(default="", description="The folder of the project.")
    recipe: str = ""
    model: str = ""
    started_s: float | None = Field(default=None, description="When it started, in seconds since the epoch.")
    headline: str = Field(default="", description="The outcome in one sentence.")
    evidence: str = Field(default="", description="What the tests say of the result, in one sentence.")
    doubt: Doubt = Field(
        default="",
        description="Why a healed result may be wrong: the tests do not decide that it is right (`undecided`), nothing "
        "in the task shows what the code must do (`unverified`), or the confidence is low (`unsure`).",
    )
    remarks: list[str] = Field(default=[], description="What qualifies the result, one line each.")
    confidence: float | None = Field(default=None, description="Confidence in the result, in [0, 1].")
    unmeasured: dict[str, str] = Field(
        default={}, description="Why its certificate does not measure `coverage` or `mutation`, by that name."
    )
    written: list[str] = Field(default=[], description="The files of the result that the run itself wrote.")
    has_diff: bool = Field(default=False, description="Whether GET /v1/runs/{run}/diff has the change.")
    applied: list[str] = Field(default=[], description="The files of the project that the run has changed.")
    can_apply: bool = Field(
        default=False, description="Whether an admin may apply it, or undo that, in its project."
    )
    why_not_applicable: str = Field(
        default="", description="Why a healed change cannot be applied by this server, and what applies it."
    )
    pull_request: PullRequest | None = Field(
        default=None, description="null: the project is no checkout of a branch from GitHub."
    )
    events: list[dict[str, Any]] | None = Field(default=None, description="Its ledger, if requested.")


class UnstartedRun(RunAccepted):
    """A run that was accepted and has not begun."""

    title: str = Field(default="", description="What a reader knows the run by.")
    requested_s: float = Field(description="When it was requested, in seconds since the epoch.")


class RunPage(BaseModel):
    """A page of runs, newest first."""

    total: int
    runs: list[dict[str, Any]]
    queued: list[UnstartedRun] = Field(description="Runs that are queued or starting, in order.")
    unindexed: int = Field(description="Older runs that may be missing until they have been read.")


class RunFiles(BaseModel):
    """The files of a run's best candidate."""

    run: str
    files: dict[str, str]


class RunComparison(BaseModel):
    """Two runs side by side."""

    run: str
    other: str
    difference: dict[str, Any] | None = Field(
        description="The first difference of their ledgers; null: none."
    )
    diff: str = Field(description="The diff from the first run's best candidate to the second's.")


class CallerDetails(BaseModel):
    """The caller, and what they may request."""

    name: str
    role: str
    needs_token: bool
    recipe: str = Field(description="The default recipe.")
    model: str = Field(description="The default model.")
    autonomy: str = Field(description="The default autonomy.")
    budget: dict[str, float | None] = Field(description="Limits of a run; null: no limit.")


class ProjectChoices(BaseModel):
    """The projects that can be healed."""

    roots: list[str]
    folders: list[str] = Field(
        description="Projects: the roots, or the folders below them, that have tests or a manifest."
    )
    git: list[str] = Field(description="Allowed prefixes of git URLs.")


class CertificateCheck(BaseModel):
    """The findings of a certificate's verification."""

    run: str
    ok: bool
    findings: list[dict[str, Any]]


class JudgementReport(BaseModel):
    """The verdict on a change."""

    id: str = Field(description="The judgement's id; see GET /v1/judgements/{judgement}.")
    path: str = Field(description="The project's folder.")
    ok: bool = Field(description="Whether the change is accepted, with or without remarks.")
    outcome: str = Field(description="`accepted`, `accepted_with_remarks`, `rejected` or `not_comparable`.")
    headline: str = Field(description="The verdict and the gravest finding.")
    facts: dict[str, str] = Field(
        description="What the tests say, what proves the change and what guards it, each in a few words."
    )
    judgement: dict[str, Any] = Field(
        description="Everything that was found, as `suture judge --json` prints it."
    )
    certificate: str = Field(
        default="",
        description="The text of the certificate's file, for `suture verify`, if it was requested.",
    )


class JudgementSummary(BaseModel):
    """A judgement in the list of judgements."""

    id: str = Field(description="The judgement's id; see GET /v1/judgements/{judgement}.")
    path: str = Field(description="The project's folder.")
    outcome: str = Field(description="`accepted`, `accepted_with_remarks`, `rejected` or `not_comparable`.")
    headline: str = Field(description="The verdict and the gravest finding.")
    change: str = Field(default="", description="The changed files, and what they were compared with.")
    requested_s: float = Field(description="When it was requested, in seconds since the epoch.")


class JudgementPage(BaseModel):
    """A page of judgements, newest first."""

    total: int
    judgements: list[JudgementSummary]


class ArchiveReceipt(BaseModel):
    """An uploaded archive."""

    archive: str = Field(description="The archive's name, for POST /v1/runs.")
    files: int


class Health(BaseModel):
    """Whether the service works."""

    ok: bool
    detail: str = ""


class ModelChoices(BaseModel):
    """The models that a caller can choose."""

    default: str
    resolved: str = Field(description="The default model, or what `auto` stands for on this machine.")
    choices: list[str]
    catalogue: list[dict[str, Any]]
