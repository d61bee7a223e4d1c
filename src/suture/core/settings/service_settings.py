"""Settings of the services that run Suture for others: the server, and CI."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from suture.core.settings.setting_types import Names


class SettingsGroup(BaseModel):
    """The base of all groups: immutable, and unknown keys are an error."""

    # Building the validators lazily keeps start-up fast: `Settings` contains the validators of all groups, so
    # most groups never need their own.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ServeSettings(SettingsGroup):
    """The service of `suture serve` (docs/serve.md)."""

    host: str = "127.0.0.1"
    """Address to listen on. An address that other machines can reach needs a token (`suture serve token add`)."""
    port: int = Field(default=8765, ge=0, le=65535)
    """Port to listen on; 0 picks a free one."""
    hosts: Names = ()
    """Host names, besides `localhost`, by which clients may address the service."""
    roots: Names = ()
    """Folders whose projects clients may heal. By default, clients can only heal projects that they upload."""
    git: Names = ()
    """Prefixes of git addresses that clients may heal, such as `https://git.example.com/team/`."""
    git_private: Names = ()
    """Git hosts that may have a private IP address."""
    models: Names = ()
    """Models that clients may choose besides the configured one, `none`, and embedded models that are here."""
    executor: Literal["local", "ray"] = "local"
    """Where runs execute: in processes of the server, or on a Ray cluster that servers share (docs/serve.md)."""
    ray_address: str = "auto"
    """Address of the cluster, as `ray.init` takes it."""
    max_concurrent_runs: int = Field(default=2, ge=1)
    """Max runs at the same time; more wait in order. On a cluster, each run takes one CPU."""
    queue: int = Field(default=32, ge=0)
    """Max runs that wait. Further requests are rejected until there is space."""
    body_kb: int = Field(default=1024, ge=1)
    """Max size in KiB of the body of a request that is not an archive."""
    archive_mb: int = Field(default=16, ge=1)
    """Max size in MiB of an uploaded archive of a project."""
    unpacked_mb: int = Field(default=64, ge=1)
    """Max size in MiB of an unpacked archive."""
    archive_files: int = Field(default=5000, ge=1)
    """Max number of files and folders in an archive."""
    keep_sent_days: float = Field(default=30, gt=0)
    """Days since their last use after which uploaded archives and clones are deleted, unless a run needs them."""
    tokens_per_day: int | None = Field(default=None, ge=1)
    """Max tokens of the runs of one client in 24 hours."""
    seconds_per_day: float | None = Field(default=None, gt=0)
    """Max wall-clock seconds of the runs of one client in 24 hours."""


class CiSettings(SettingsGroup):
    """What `suture ci` accepts, and how it delivers what it accepts (docs/ci.md)."""

    delivery: Literal["artifact", "comment", "pull_request"] = "artifact"
    """What `suture ci deliver` creates: only the artifact folder, a comment with suggestions, or a draft pull
    request."""
    confidence: float = Field(default=0.7, ge=0, le=1)
    """Min confidence of a change (docs/proof.md)."""
    evidence: Literal["split", "nonce", "report", "exit_status"] = "report"
    """Weakest acceptable kind of evidence; the values are ordered from the strongest to the weakest."""
    new_capabilities: bool = False
    """Whether to accept a change that newly uses the test machinery or the interpreter (docs/verdicts.md). Such a
    change has a confidence of at most 0.5."""
    max_lines: int = Field(default=40, ge=1)
    """Max lines that a change may add and remove, taken together."""
    max_files: int = Field(default=3, ge=1)
    """Max files that a change may touch."""
    forbidden: Names = (
        "*.lock",
        "*-lock.json",
        "*-lock.yaml",
        "go.sum",
        "requirements*.txt",
        "constraints*.txt",
        ".github/",
        ".gitlab-ci.yml",
        ".gitlab/",
        ".circleci/",
        "Jenkinsfile",
        "Dockerfile*",
        "migrations/",
        "alembic/",
        "*secret*",
        "*credential*",
    )
    """Globs of files that no change may touch. Names of secret files are always included."""
    new_only: bool = True
    """Whether to heal only tests that pass at the base commit."""
    max_heals: int = Field(default=3, ge=0)
    """Max heals of one branch: those in its commits, and those that are delivered and still open."""
    bots: Names = ("*\\[bot\\]", "project_*_bot*", "group_*_bot*")
    """Globs of author names whose commits are never healed, besides Suture's own."""
