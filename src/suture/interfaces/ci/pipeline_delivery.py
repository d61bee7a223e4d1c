"""Hand over what another job has healed: its certificate alone is read, gated and verified again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import SecretStr

from suture.core.records import Task
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.ci.ci_checkout import Checkout, read_checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.code_host import ChangedFile, CodeHost, DeliveredChange
from suture.interfaces.ci.delivery_gates import GatedChange, Refusal, check_change_gates, check_pipeline_gates
from suture.interfaces.ci.github import GitHub
from suture.interfaces.ci.gitlab import GitLab
from suture.interfaces.ci.line_edits import count_changed_lines, line_edits_between, widen_to_replacement
from suture.interfaces.ci.markdown_report import is_shown_whole, render_comment
from suture.interfaces.ci.pipeline_heal import HealRequest, load_heal_task, split_deselected
from suture.interfaces.narrative.plain_text import escape_unprintable
from suture.judge.certificates import Certificate, InvalidCertificate, load_certificate
from suture.project.workspace import PatchRefused, apply_diff

MOST_TITLE_CHARS = 100
"""The most that the names of tests take of a title."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What became of a hand-over, or would.

    Attributes:
        refusal: The gate that forbids it; `None` where it may be.
        handed: What is handed over.
        heals: How many of the branch's own commits are heals.
        how: In fixed words; empty where a gate forbids it.
        address: Where it can be seen; empty where nothing was sent.
    """

    refusal: Refusal | None = None
    handed: DeliveredChange | None = None
    heals: int = 0
    how: str = ""
    address: str = ""


def prepare_delivery(
    find_certificate: Path, asked: HealRequest, pipeline: Pipeline, settings: Settings
) -> Delivery:
    """Read a certificate, put it to the gates, and make of it what would be handed over. Nothing runs.

    Args:
        certificate_path: The certificate's file, from another job.
        asked: The project as it is checked out here, and its test command.
        pipeline: What the service says.
        settings: The gates, and the token.

    Raises:
        UsageError: The certificate cannot be read, or the checkout is another one.
        StorageError: The repository cannot be read.
    """
    checkout = read_checkout(asked.root, pipeline, asked.base)
    refusal = check_pipeline_gates(pipeline, checkout, settings)
    if refusal is not None:
        return Delivery(refusal=refusal)
    try:
        certificate = load_certificate(find_certificate)
    except InvalidCertificate as fault:
        return Delivery(refusal=Refusal(reason="not_verified", detail=str(fault)))
    task = load_heal_task(asked, settings)
    try:
        after = apply_diff(task.files, certificate.diff)
    except PatchRefused as fault:
        return Delivery(refusal=Refusal(reason="not_verified", detail=str(fault)))
    changes = any(task.files.get(path) != content for path, content in after.items())
    if not changes or task.files.keys() - after.keys():  # no heal of ours does either
        return Delivery(
            refusal=Refusal(reason="not_verified", detail="it changes nothing, or deletes a file")
        )
    refusal = _gate_certificate(certificate, task, after, settings)
    if refusal is not None:
        return Delivery(refusal=refusal)
    handed = _hand_over_of(certificate, task.files, after, checkout)
    return Delivery(handed=handed, heals=checkout.heals)


def deliver(prepared: Delivery, pipeline: Pipeline, settings: Settings, *, dry_run: bool = False) -> Delivery:
    """Hand over a prepared change whose certificate was verified.

    Args:
        prepared: Of `prepare_delivery`, without a refusal.
        pipeline: What the service says.
        settings: How it is handed over, and the token.
        dry_run: Whether nothing is asked of the service and nothing sent.

    Raises:
        UsageError: There is no service, or no pull request to comment on.
        PrerequisiteError: There is no token, or it may not do this.
        CodeHostError: The service says no.
    """
    handed, how = prepared.handed, settings.ci.hand_over
    if handed is None:
        raise ValueError("a refused change is not handed over")
    if how == "artifact" or dry_run:
        return Delivery(handed=handed, how=how)
    host = open_host(pipeline, settings.keys.ci)
    sent = host.comment(handed) if how == "comment" else host.open_draft(handed)
    return Delivery(handed=handed, how=how, address=sent)


def check_open_heals(prepared: Delivery, pipeline: Pipeline, settings: Settings) -> Refusal | None:
    """Ask the service what it has of the branch's heals, before time is spent on another one.

    Raises:
        UsageError: There is no service, or the pipeline is of no branch.
        PrerequisiteError: There is no token, or it may not do this.
        CodeHostError: The service says no.
    """
    if settings.ci.hand_over == "artifact" or prepared.handed is None:
        return None
    there = open_host(pipeline, settings.keys.ci).heals()
    if prepared.handed.parent in there:
        return Refusal(reason="already_delivered", detail=prepared.handed.parent[:12])
    if (heals := prepared.heals + len(there)) >= settings.ci.most_heals:
        return Refusal(reason="too_many_heals", detail=f"{heals} of {settings.ci.most_heals}, open ones too")
    return None


def open_host(pipeline: Pipeline, token: SecretStr | None) -> CodeHost:
    """The service that runs the pipeline.

    Raises:
        UsageError: None does, or the pipeline is of no branch.
        PrerequisiteError: There is no token.
    """
    if pipeline.host == "none":
        raise UsageError(
            "no service of code runs this, so there is nobody to hand over to",
            remedy="set ci.hand_over=artifact, and apply fix.patch",
        )
    if not pipeline.branch:
        raise UsageError("this pipeline is of no branch", remedy="set ci.hand_over=artifact")
    if token is None:
        raise PrerequisiteError("there is no token to hand over with", remedy="set SUTURE_KEYS_CI")
    return GitHub(pipeline, token) if pipeline.host == "github" else GitLab(pipeline, token)


def _gate_certificate(
    certificate: Certificate, task: Task, after: Mapping[str, bytes], settings: Settings
) -> Refusal | None:
    command, _ = split_deselected(certificate.task.test_command)
    if command != split_deselected(task.test_command)[0] or certificate.task.kind != "heal":
        return Refusal(reason="other_command", detail=" ".join(certificate.task.test_command)[:200])
    changed = tuple(sorted(path for path in after if task.files.get(path) != after[path]))
    change = GatedChange(
        files=changed,
        lines=count_changed_lines(line_edits_between(task.files, after)),
        confidence=certificate.confidence,
        evidence=certificate.evidence,
    )
    return check_change_gates(change, settings)


def _hand_over_of(
    certificate: Certificate, before: Mapping[str, bytes], after: Mapping[str, bytes], checkout: Checkout
) -> DeliveredChange:
    changed = sorted(path for path in after if before.get(path) != after[path])
    _require_committed(checkout, changed, before)
    prefix = checkout.repository.prefix
    edits = tuple(
        widen_to_replacement(edit, before, prefix)
        for edit in line_edits_between(before, after)
        if edit.path in before
    )
    tellable = all(path in before for path in changed) and all(
        is_shown_whole("\n".join(edit.new)) for edit in edits
    )
    shown = f"{_word(changed[0])}{f' and {len(changed) - 1} more' if len(changed) > 1 else ''}"
    title = f"Heal {shown[:MOST_TITLE_CHARS]}"
    fixed = [f"- {_word(name)}" for name in certificate.fixed[:10]]
    body = "\n".join(["Passing now:", *fixed, ""]) if fixed else ""
    command, left_out = split_deselected(certificate.task.test_command)
    programs = _programs(checkout, changed)
    made_by = f"Healed-by: suture {version('suture')} (certificate {certificate.seal[:12]})"
    return DeliveredChange(
        parent=checkout.commit,
        title=title,
        message=f"{title}\n\n{body}\n{made_by}\n",
        text=render_comment(
            commit=checkout.commit,
            diff=certificate.diff,
            fixed=certificate.fixed,
            command=command,
            left_out=left_out,
            confidence=certificate.confidence,
            evidence=certificate.evidence,
        ),
        files=tuple(
            ChangedFile(
                path=prefix + path,
                content=after[path],
                is_program=path in programs,
                is_new=path not in before,
            )
            for path in changed
        ),
        suggestions=edits if tellable else (),
    )


def _word(name: str) -> str:
    """A name of others as one word: services obey `[skip ci]` and `closes #1` in a commit's message."""
    return "_".join(escape_unprintable(name).split())


def _require_committed(checkout: Checkout, paths: list[str], before: Mapping[str, bytes]) -> None:
    """Refuse to commit on top of files that are otherwise here than in the commit."""
    blobs = checkout.repository.blobs_at(checkout.commit, paths)
    held = dict(zip(blobs, checkout.repository.read_blobs(list(blobs.values())), strict=True))
    other = [path for path in paths if held.get(path) != before.get(path)]
    if other:
        raise UsageError(
            f"{other[0]!r} is otherwise here than in commit {checkout.commit[:12]}",
            remedy="hand over from a fresh checkout, without line ends that git converts",
        )


def _programs(checkout: Checkout, paths: list[str]) -> set[str]:
    prefix = checkout.repository.prefix
    listed = checkout.repository.git(
        "ls-tree", "-z", "--full-tree", checkout.commit, "--", *(prefix + path for path in paths)
    )
    entries = (entry.partition(b"\t") for entry in listed.split(b"\0")[:-1])
    return {
        name.decode("utf-8", "surrogateescape").removeprefix(prefix)
        for fields, _, name in entries
        if fields.startswith(b"100755")
    }
