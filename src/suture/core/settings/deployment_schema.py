"""The knobs of what surrounds runs: folders, the database, memory, the log, the service, healing in CI."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from suture.core.settings.groups import Group
from suture.core.settings.model_schema import Address, Names


class PathSettings(Group):
    """Where Suture keeps things. It never writes into a project unless asked to apply a diff."""

    home: Path = Field(default=Path("~/.local/state/suture"), validate_default=True)
    """Runs and the checkpoint database."""
    cache: Path = Field(default=Path("~/.cache/suture"), validate_default=True)
    """Model weights and measurements of this machine."""
    prompts: Path | None = None
    """Prompts in the place of ours; a project's own `.suture/prompts` where unset."""

    @field_validator("home", "cache", "prompts", mode="after")
    @classmethod
    def _expand_home(cls, path: Path | None) -> Path | None:
        try:
            return path.expanduser() if path else None
        except RuntimeError as fault:  # a user with neither HOME nor an entry in the password file
            raise ValueError(f"{str(path)!r}: no home folder is known here; set HOME") from fault


class StoreSettings(Group):
    """The database of all runs, and what is kept where others reach it (docs/store.md)."""

    url: str | None = None
    """`sqlite:///FILE` or `postgresql://user@host/name`; the file `suture.db` beside the runs where unset."""
    fallback_url: str | None = None
    """A PostgreSQL that counts where `store.url` is unset and `suture db init` has made Suture's tables."""
    runs: Literal["local", "database"] = "local"
    """Where ledgers, blobs, replies and checkpoints are: here alone, or in the PostgreSQL of `store.url` too,
    so that another machine can go on with a run."""
    namespace: str = Field(default="default", pattern=r"^[\w.-]{1,100}$")
    """Whose rows are read and written: of a team or a project, where several share one database."""


class MemorySettings(Group):
    """What is remembered across runs, and how it is used (docs/memory.md)."""

    use: Literal["off", "search", "prompts", "on"] = "off"
    """What memories of earlier runs are used for: nothing, the search's order, prompts, or both."""
    embedder: str = "hashed"
    """Who makes vectors of texts: `hashed`, `minilm`, `openai:MODEL`, `ollama:MODEL`, or `none`."""
    base_url: Address = None
    """The embedder's address, where not its usual one; with OpenAI's protocol up to `/v1`."""
    most: int = Field(default=2, ge=0, le=20)
    """The most memories that a prompt tells."""
    chars: int = Field(default=400, ge=40, le=4000)
    """The most characters of each of them in a prompt."""
    withheld: float = Field(default=0.2, ge=0, le=0.5)
    """The share of found memories that is held back by chance, to learn whether they help."""
    placebo: float = Field(default=0.05, ge=0, le=0.5)
    """The share in whose place a text of the same length says nothing, as a control."""
    seed: int = 0
    """Decides which."""


class LogSettings(Group):
    """Structured logs: the events of the ledger, one JSON object a line (docs/store.md)."""

    file: Path | None = None
    """The file; none is written where unset."""
    most_mb: int = Field(default=20, ge=1)
    """At this size, in MiB, the file is put aside and a new one begun."""
    kept: int = Field(default=5, ge=1)
    """How many older files are kept."""


class ServeSettings(Group):
    """The service of `suture serve` (docs/serve.md)."""

    host: str = "127.0.0.1"
    """The address it listens at; any but this machine's own takes a token (`suture serve token add`)."""
    port: int = Field(default=8765, ge=0, le=65535)
    """Its port; 0 takes a free one."""
    hosts: Names = ()
    """Names, besides `localhost`, under which callers may reach it."""
    roots: Names = ()
    """Folders in which callers may have projects healed; none but what they send where there are none."""
    git: Names = ()
    """Beginnings of git addresses that callers may have healed, such as `https://git.example.com/team/`."""
    git_private: Names = ()
    """Hosts of these that may lie at an address which is not everybody's."""
    models: Names = ()
    """Models that callers may choose besides the one set; `none` they always may."""
    executor: Literal["local", "ray"] = "local"
    """Who does the runs: processes of the server, or a Ray cluster that servers share (docs/serve.md)."""
    ray_address: str = "auto"
    """The cluster, as `ray.init` takes it."""
    runs_at_once: int = Field(default=2, ge=1)
    """The most runs that go on at once; the others wait in their order. In a cluster each takes a CPU."""
    queue: int = Field(default=32, ge=0)
    """The most runs that wait; more are refused for now."""
    body_kb: int = Field(default=1024, ge=1)
    """The most of a request's body, in KiB, where it is no archive."""
    archive_mb: int = Field(default=16, ge=1)
    """The most of an archive of a project, in MiB, as it is sent."""
    unpacked_mb: int = Field(default=64, ge=1)
    """The most of what comes out of it, in MiB."""
    archive_files: int = Field(default=5000, ge=1)
    """The most files and folders in it."""
    keep_sent_days: float = Field(default=30, gt=0)
    """Days after their last use at which archives and clones are removed that no run can go on with."""
    tokens_a_day: int | None = Field(default=None, ge=1)
    """The most tokens of one caller's runs in 24 hours."""
    seconds_a_day: float | None = Field(default=None, gt=0)
    """The most wall-clock seconds of one caller's runs in 24 hours."""


class CiSettings(Group):
    """The gates of `suture ci` (docs/ci.md), and how it hands over what passes them."""

    hand_over: Literal["artifact", "comment", "pull_request"] = "artifact"
    """What `suture ci deliver` does: nothing beyond the folder, a comment with suggestions, or a draft."""
    confidence: float = Field(default=0.7, ge=0, le=1)
    """The least confidence of a change (docs/proof.md)."""
    evidence: Literal["split", "nonce", "report", "exit_status"] = "report"
    """The weakest kind of evidence that will do, of these from the strongest to the weakest."""
    most_lines: int = Field(default=40, ge=1)
    """The most lines that a change may add and take away, together."""
    most_files: int = Field(default=3, ge=1)
    """The most files that a change may touch."""
    forbidden: Names = (
        *("*.lock", "*-lock.json", "*-lock.yaml", "go.sum", "requirements*.txt", "constraints*.txt"),
        *(".github/", ".gitlab-ci.yml", ".gitlab/", ".circleci/", "Jenkinsfile", "Dockerfile*"),
        *("migrations/", "alembic/", "*secret*", "*credential*"),
    )
    """Globs of files that no change may touch; names of files that keep secrets are always among them."""
    new_only: bool = True
    """Whether only tests are mended that do not fail at the base commit too."""
    most_heals: int = Field(default=3, ge=0)
    """The most heals of one branch: in its own commits, and handed over and still there."""
    bots: Names = ("*\\[bot\\]", "project_*_bot*", "group_*_bot*")
    """Globs of names whose commits are never healed, besides Suture's own."""
