"""What callers send and get, as the OpenAPI document has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

RUN_ID = r"^[0-9]{8}-[0-9]{9}-[0-9a-f]{6}$"
Text = Annotated[str, StringConstraints(max_length=200_000)]
Line = Annotated[str, StringConstraints(max_length=4_000)]
Lines = Annotated[list[Line], Field(max_length=200)]


class RunRequest(BaseModel):
    """What every request for a run may say."""

    model_config = ConfigDict(extra="forbid")
    recipe: Line | None = Field(default=None, description="A name of GET /v1/recipes.")
    model: Line | None = Field(default=None, description="A name of GET /v1/models, or `none`.")
    autonomy: Literal["full_auto", "review_repairs", "review_all"] | None = None
    attempts: int | None = Field(default=None, ge=1, le=10_000)
    tokens: int | None = Field(default=None, ge=1, le=10**9)
    money: float | None = Field(default=None, gt=0, le=10**6, description="US dollars.")
    seconds: float | None = Field(default=None, gt=0, le=10**6)


class WriteRequest(RunRequest):
    """Ask for new code, as `suture run` does."""

    kind: Literal["write"]
    task: Annotated[Text, Field(min_length=1)] = Field(
        description="What is wanted, with examples where there are any.",
        examples=["Write a function double(n). For example: double(4) == 8"],
    )
    asserts: Text = Field(default="", description="Plain asserts, as text.")
    entry_point: Line | None = Field(default=None, description="The name to define.")


class HealProjectRequest(RunRequest):
    """A repair of a project: a folder below an allowed root, an archive that was sent, or a repository."""

    kind: Literal["heal"]
    path: Line | None = Field(default=None, description="A project's folder below one of serve.roots.")
    archive: Line | None = Field(default=None, description="A name that POST /v1/archives gave.")
    git: Line | None = Field(default=None, description="A repository's address that serve.git allows.")
    ref: Line | None = Field(default=None, description="Its branch or tag, where not the first.")
    test: Line | None = Field(default=None, description="What must pass; else what the files show.")
    protect: Lines = Field(default=[], description="Globs of files that stay as they are.")
    only: Lines = Field(default=[], description="Globs of the files that may change.")
    since: Line | None = Field(default=None, description="The oldest commit that may have broken it.")
    words: Text = Field(default="", description="What is known of the fault; a model reads it.")


NewRunRequest = Annotated[WriteRequest | HealProjectRequest, Field(discriminator="kind")]


class ForkRequest(RunRequest):
    """A new run from a step of another one."""

    at: int = Field(ge=0, le=10**6, description="How many decisions had been carried out.")
    hint: Text = Field(default="", description="What the model is told from there on.")
    candidate: dict[Line, Text] = Field(default={}, description="Files to judge first, path to text.")


class ReviewAnswerRequest(BaseModel):
    """An answer to the question that a run waits with."""

    model_config = ConfigDict(extra="forbid")
    choice: Literal["approve", "edit", "redirect", "reject", "abort", "first", "second", "neither", "unsure"]
    hint: Text = Field(default="", description="For `redirect`: what the model is told.")
    files: dict[Line, Text] = Field(default={}, description="For `edit`: path to text.")
    key: Line = Field(default="", description="The question's, where only that one is answered.")


class RunAccepted(BaseModel):
    """A run that will be, is being or was done."""

    run: str = Field(description="Its id; see GET /v1/runs/{run}.")
    state: str = Field(description="`queued`, `running`, `waiting`, `stopped`, `ended` or `refused`.")


class RunDetails(BaseModel):
    """A run as it stands."""

    run: str
    state: str
    outcome: str | None = None
    reason: str | None = None
    caller: str | None = Field(default=None, description="Who asked this server for it.")
    error: dict[str, Any] | None = Field(default=None, description="Why its work ended without an outcome.")
    spend: dict[str, Any] = {}
    question: dict[str, Any] | None = Field(default=None, description="What it waits for an answer to.")
    events: list[dict[str, Any]] | None = Field(default=None, description="Its ledger, where asked for.")


class RunPage(BaseModel):
    """A page of runs, newest first."""

    total: int
    runs: list[dict[str, Any]]
    queued: list[RunAccepted] = Field(description="Runs that wait for their turn here, in order.")


class RunFiles(BaseModel):
    """The files of a run's best candidate."""

    run: str
    files: dict[str, str]


class Comparison(BaseModel):
    """Two runs side by side."""

    run: str
    other: str
    difference: dict[str, Any] | None = Field(description="Where their ledgers part first; null: nowhere.")
    diff: str = Field(description="From the one's best candidate to the other's.")


class CallerDetails(BaseModel):
    """Who asks, and what they may ask for."""

    name: str
    role: str
    needs_token: bool
    recipe: str = Field(description="Taken where none is chosen.")
    model: str = Field(description="The same.")
    autonomy: str = Field(description="The same.")
    budget: dict[str, float | None] = Field(description="The most of a run; null: no limit.")


class ProjectChoices(BaseModel):
    """Folders that a repair may be asked for."""

    roots: list[str]
    folders: list[str] = Field(description="Below these, one level deep.")
    git: list[str] = Field(description="Beginnings of git addresses.")


class CertificateCheck(BaseModel):
    """What a replay of a certificate found out."""

    run: str
    ok: bool
    findings: list[dict[str, Any]]


class ArchiveReceipt(BaseModel):
    """An archive that was unpacked."""

    archive: str = Field(description="Its name, for POST /v1/runs.")
    files: int


class Health(BaseModel):
    """Whether the service works."""

    ok: bool
    detail: str = ""


class ModelChoices(BaseModel):
    """The models that a caller may choose."""

    default: str
    choices: list[str]
    catalogue: list[dict[str, Any]]
