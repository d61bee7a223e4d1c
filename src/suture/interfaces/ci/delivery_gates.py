"""The gates of `suture ci`: conditions that are checked before a heal and on its change.

A gate that is not met refuses the heal with one of the codes in `RefusalReason`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from suture.core.records import CapabilityUse, Evidence
from suture.core.settings import Settings
from suture.interfaces.ci.ci_checkout import Checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.tuning import MAX_LISTED_PATHS, MAX_PERSON_CHARS
from suture.interfaces.narrative.wording import render_capability
from suture.project.workspace.globs import parse_globs
from suture.project.workspace.secret_detection import has_secret_name

RefusalReason = Literal[
    "fork_with_secrets",
    "bot_commit",
    "too_many_heals",
    "base_unknown",
    "not_new",
    "weak_evidence",
    "new_capability",
    "low_confidence",
    "too_many_files",
    "too_many_lines",
    "forbidden_path",
    "no_certificate",
    "other_command",
    "not_verified",
    "already_delivered",
    "rejected",
]
"""Every reason for which `suture ci` refuses, in the order of the checks."""
REFUSAL_TEXTS: Mapping[RefusalReason, str] = {
    "fork_with_secrets": "the code comes from a fork while a key or token is configured, or by the event "
    "`pull_request_target`",
    "bot_commit": "the last commit was made by a bot or by Suture",
    "too_many_heals": "the branch already has `ci.max_heals` heals",
    "base_unknown": "`ci.new_only` has no base commit to compare with",
    "not_new": "every failing test also fails at the base commit",
    "weak_evidence": "the verdict's evidence is weaker than `ci.evidence`",
    "new_capability": "the change newly uses the test machinery or the interpreter, and "
    "`ci.new_capabilities` is false",
    "low_confidence": "the confidence is below `ci.confidence`",
    "too_many_files": "the change touches more files than `ci.max_files`",
    "too_many_lines": "the change is longer than `ci.max_lines`",
    "forbidden_path": "the change touches a file in `ci.forbidden`, or one that may hold secrets",
    "no_certificate": "the heal has no certificate to deliver it by",
    "other_command": "the certificate is for a test command other than this project's",
    "not_verified": "`suture verify` rejects the certificate",
    "already_delivered": "the heal of this commit has been delivered already",
    "rejected": "a person has rejected the heal of this commit",
}
"""What each refusal means."""
EVIDENCE_BY_STRENGTH: tuple[Evidence, ...] = ("exit_status", "report", "nonce", "split")
"""Kinds of evidence, weakest first."""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The refusal of a heal by a gate.

    Attributes:
        reason: The code of the refusal.
        detail: What was found, for people; it can contain untrusted text.
    """

    reason: RefusalReason
    detail: str


def check_pipeline_gates(pipeline: Pipeline, checkout: Checkout, settings: Settings) -> Refusal | None:
    """Return what forbids a heal before anything runs, or `None`."""
    keys = sorted(name for name, key in settings.keys if key is not None)
    if pipeline.is_fork and keys:
        return Refusal(reason="fork_with_secrets", detail=f"settings hold keys.{', keys.'.join(keys)}")
    if pipeline.is_fork and pipeline.is_privileged:
        return Refusal(reason="fork_with_secrets", detail="use the event pull_request (docs/ci.md)")
    if checkout.is_heal:
        return Refusal(reason="bot_commit", detail=f"{checkout.commit[:12]} is a commit of Suture")
    bots = parse_globs(settings.ci.bots, "ci.bots")
    for person in (*checkout.people, *pipeline.actors):
        # The patterns are globs of paths, in which `*` matches no slash. Of an address, the domain does not count.
        name = person.partition("@")[0].replace("/", "_")[:MAX_PERSON_CHARS]
        if name and bots.covers(name):
            return Refusal(reason="bot_commit", detail=f"{name!r} made {checkout.commit[:12]}")
    if checkout.heals >= settings.ci.max_heals:
        return Refusal(reason="too_many_heals", detail=f"{checkout.heals} of {settings.ci.max_heals}")
    if settings.ci.new_only and not checkout.base:
        return Refusal(reason="base_unknown", detail="fetch more of the history, or set ci.new_only=false")
    return None


def check_change_gates(
    settings: Settings,
    *,
    files: Sequence[str],
    lines: int,
    confidence: float,
    evidence: Evidence | None,
    capabilities: Sequence[CapabilityUse] = (),
) -> Refusal | None:
    """Return the first refusal of a verified change, in the order of `REFUSAL_TEXTS`, or `None`.

    Args:
        lines: The number of added and removed lines.
        capabilities: What the change newly uses (see docs/verdicts.md).
    """
    ci = settings.ci
    strength = EVIDENCE_BY_STRENGTH.index
    if evidence is None or strength(evidence) < strength(ci.evidence):
        return Refusal(reason="weak_evidence", detail=f"{evidence} is weaker than {ci.evidence}")
    if capabilities and not ci.new_capabilities:
        return Refusal(reason="new_capability", detail=render_capability(capabilities[0]))
    if confidence < ci.confidence:
        return Refusal(reason="low_confidence", detail=f"{confidence:.2f} of {ci.confidence:g}")
    if len(files) > ci.max_files:
        return Refusal(reason="too_many_files", detail=f"{len(files)} of at most {ci.max_files}")
    if lines > ci.max_lines:
        return Refusal(reason="too_many_lines", detail=f"{lines} of at most {ci.max_lines}")
    if paths := forbidden_paths(files, ci.forbidden):
        return Refusal(reason="forbidden_path", detail=", ".join(map(repr, paths[:MAX_LISTED_PATHS])))
    return None


def forbidden_paths(paths: Sequence[str], globs: Sequence[str]) -> list[str]:
    """Return the files that no heal in a pipeline may change."""
    forbidden = parse_globs(globs, "ci.forbidden")
    return [path for path in paths if forbidden.covers(path) or has_secret_name(path, is_folder=False)]
