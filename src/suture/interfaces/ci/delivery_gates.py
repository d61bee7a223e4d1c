"""The gates of `suture ci`: questions with named reasons, asked before a heal and of what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from suture.core.records import Evidence
from suture.core.settings import Settings
from suture.interfaces.ci.ci_checkout import Checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.project.workspace.globs import parse_globs
from suture.project.workspace.secret_detection import may_be_secret

REFUSAL_TEXTS: Mapping[str, str] = {
    "fork_with_secrets": "the code comes from a fork, and a key or token is within reach",
    "bot_commit": "the last commit is a program's, or Suture's own",
    "too_many_heals": "`ci.most_heals` of this branch are there",
    "base_unknown": "`ci.new_only` has nothing to compare with",
    "not_new": "every failing test fails at the base commit too",
    "weak_evidence": "the verdict is of a weaker kind than `ci.evidence`",
    "low_confidence": "the confidence is below `ci.confidence`",
    "too_many_files": "the change touches more files than `ci.most_files`",
    "too_many_lines": "the change is longer than `ci.most_lines`",
    "forbidden_path": "the change touches a file of `ci.forbidden`, or one that keeps secrets",
    "other_command": "the certificate is of another test command than this project's",
    "not_verified": "`suture verify` rejects the certificate",
    "already_delivered": "this commit's heal is handed over already",
}
"""Every reason for which `suture ci` refuses, and what it means; the order is that of the questions."""
STRENGTH: tuple[Evidence, ...] = ("exit_status", "report", "nonce", "split")
"""Kinds of evidence, the weakest first."""
MOST_NAMED = 5
MOST_PERSON_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A gate that stays shut.

    Attributes:
        reason: A name of `REFUSAL_TEXTS`.
        detail: What was found, for people; it may hold text of others.
    """

    reason: str
    detail: str

    def __post_init__(self) -> None:
        if self.reason not in REFUSAL_TEXTS:
            raise ValueError(f"{self.reason!r} is no gate's reason")


@dataclass(frozen=True, kw_only=True)
class GatedChange:
    """What the gates ask of a change.

    Attributes:
        files: The files that it touches.
        lines: The lines that it adds and takes away, together.
        confidence: In [0, 1].
        evidence: The kind of evidence of its verdict.
    """

    files: tuple[str, ...]
    lines: int
    confidence: float
    evidence: Evidence | None


def check_pipeline_gates(pipeline: Pipeline, checkout: Checkout, settings: Settings) -> Refusal | None:
    """What forbids a heal before anything runs."""
    keys = sorted(name for name, key in settings.keys if key is not None)
    if pipeline.is_fork and keys:
        return Refusal(reason="fork_with_secrets", detail=f"settings hold keys.{', keys.'.join(keys)}")
    if checkout.is_heal:
        return Refusal(reason="bot_commit", detail=f"{checkout.commit[:12]} is a heal of Suture's")
    programs = parse_globs(settings.ci.bots, "ci.bots")
    for person in (*checkout.people, *pipeline.actors):
        name = person.partition("@")[0].replace("/", "_")[:MOST_PERSON_CHARS]
        if name and programs.covers(name):
            return Refusal(reason="bot_commit", detail=f"{name!r} is behind {checkout.commit[:12]}")
    if checkout.heals >= settings.ci.most_heals:
        return Refusal(reason="too_many_heals", detail=f"{checkout.heals} of {settings.ci.most_heals}")
    if settings.ci.new_only and not checkout.base:
        return Refusal(reason="base_unknown", detail="fetch more of the history, or set ci.new_only=false")
    return None


def check_change_gates(change: GatedChange, settings: Settings) -> Refusal | None:
    """What forbids that a verified change is handed over; the first reason in the order of `REFUSAL_TEXTS`."""
    return next(_shut(change, settings), None)


def _shut(change: GatedChange, settings: Settings) -> Iterator[Refusal]:
    ci = settings.ci
    if change.evidence is None or STRENGTH.index(change.evidence) < STRENGTH.index(ci.evidence):
        yield Refusal(reason="weak_evidence", detail=f"{change.evidence} is less than {ci.evidence}")
    if change.confidence < ci.confidence:
        yield Refusal(reason="low_confidence", detail=f"{change.confidence:.2f} of {ci.confidence:g}")
    if len(change.files) > ci.most_files:
        yield Refusal(reason="too_many_files", detail=f"{len(change.files)} of at most {ci.most_files}")
    if change.lines > ci.most_lines:
        yield Refusal(reason="too_many_lines", detail=f"{change.lines} of at most {ci.most_lines}")
    if found := forbidden_paths(change.files, ci.forbidden):
        yield Refusal(reason="forbidden_path", detail=", ".join(map(repr, found[:MOST_NAMED])))


def forbidden_paths(paths: Sequence[str], globs: Sequence[str]) -> list[str]:
    """Those of some files that no heal in a pipeline may touch."""
    forbidden = parse_globs(globs, "ci.forbidden")
    return [path for path in paths if forbidden.covers(path) or may_be_secret(path, is_folder=False)]
