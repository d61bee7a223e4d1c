"""Deliver a change that another job has healed.

Of that job's output only the certificate is used. The gates check it, and it is verified again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pydantic import SecretStr

from suture.core.records import Task
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, UsageError
from suture.interfaces.ci.ci_checkout import Checkout, read_checkout
from suture.interfaces.ci.ci_pipeline import Pipeline
from suture.interfaces.ci.code_host import ChangedFile, CodeHost, DeliveredChange, RequestPrinter
from suture.interfaces.ci.delivery_gates import Refusal, check_change_gates, check_pipeline_gates
from suture.interfaces.ci.github import GitHub
from suture.interfaces.ci.gitlab import GitLab
from suture.interfaces.ci.line_edits import count_changed_lines, line_edits_between, widen_to_replacement
from suture.interfaces.ci.markdown_summary import is_shown_whole, render_comment
from suture.interfaces.ci.pipeline_heal import HealRequest, load_heal_task, split_deselected
from suture.interfaces.ci.tuning import MAX_FIXED_TESTS, MAX_TITLE_CHARS
from suture.interfaces.narrative.plain_text import escape_unprintable
from suture.judge.certificates import (
    Certificate,
    InvalidCertificate,
    find_certificate,
    load_certificate,
)
from suture.loop import RecordedRun
from suture.project.workspace import DiffDoesNotApply, apply_diff


@dataclass(frozen=True, kw_only=True)
class PipelineDelivery:
    """The state of a delivery: refused, prepared or sent.

    Attributes:
        change: The change to deliver; `None` if a gate refused.
        heals: The number of the branch's commits that are heals.
        how: The kind of delivery; empty before the change is delivered.
        address: Where the delivery can be viewed; empty if nothing was sent.
    """

    refusal: Refusal | None = None
    change: DeliveredChange | None = None
    heals: int = 0
    how: str = ""
    address: str = ""


def prepare_delivery(
    certificate_file: Path, request: HealRequest, pipeline: Pipeline, settings: Settings
) -> PipelineDelivery:
    """Read a certificate, check the gates, and build the change to deliver. Nothing is run.

    Args:
        certificate_file: The certificate's file, from another job.
        request: The project as checked out here, and its test command.
        pipeline: What the CI service says.
        settings: The gates and the token.

    Raises:
        UsageError: The certificate cannot be read, or the checkout does not match.
        StorageError: The repository cannot be read.
    """
    checkout = read_checkout(request.root, pipeline, request.base)
    refusal = check_pipeline_gates(pipeline, checkout, settings)
    if refusal is not None:
        return PipelineDelivery(refusal=refusal)
    return _prepare_certified(certificate_file, lambda: load_heal_task(request, settings), checkout, settings)


def prepare_run_delivery(run: RecordedRun, pipeline: Pipeline, settings: Settings) -> PipelineDelivery:
    """Prepare the change of a run of this machine as `prepare_delivery` does; nothing is run.

    The working tree does not count, since the change may have been applied to it. The checked-out commit must hold
    the files that the run has repaired.

    Raises:
        UsageError: The run has no certificate, or the commit has other files.
        StorageError: The repository cannot be read.
    """
    certificate_file = find_certificate(run.folder.path, settings.paths.home)
    checkout = read_checkout(run.project, pipeline)
    refusal = check_pipeline_gates(pipeline, checkout, settings)
    if refusal is not None:
        return PipelineDelivery(refusal=refusal)
    _require_tested_commit(checkout, run.task.files)
    return _prepare_certified(certificate_file, lambda: run.task, checkout, settings)


def _prepare_certified(
    certificate_file: Path, load_task: Callable[[], Task], checkout: Checkout, settings: Settings
) -> PipelineDelivery:
    """Read a certificate, check the gates of its change, and build the change on top of the checked-out commit."""
    try:
        certificate = load_certificate(certificate_file)
        task = load_task()
        after = apply_diff(task.files, certificate.diff)
    except (InvalidCertificate, DiffDoesNotApply) as fault:
        return PipelineDelivery(refusal=Refusal(reason="not_verified", detail=str(fault)))
    changed = sorted(path for path in after if task.files.get(path) != after[path])
    if not changed or task.files.keys() - after.keys():  # no heal of Suture does either
        return PipelineDelivery(
            refusal=Refusal(reason="not_verified", detail="the change is empty or deletes a file")
        )
    refusal = _gate_certificate(certificate, task, after, changed, settings)
    if refusal is not None:
        return PipelineDelivery(refusal=refusal)
    change = _make_change(certificate, task.files, after, changed, checkout)
    return PipelineDelivery(change=change, heals=checkout.heals)


def deliver_change(prepared: PipelineDelivery, host: CodeHost | None, settings: Settings) -> PipelineDelivery:
    """Deliver a prepared change whose certificate has been verified.

    Args:
        prepared: The result of `prepare_delivery`, without a refusal.
        host: The result of `open_host`.
        settings: The kind of delivery.

    Raises:
        UsageError: There is no pull request to comment on.
        PrerequisiteError: The token lacks permission.
        CodeHostError: The service refuses.
    """
    change, how = require_change(prepared), settings.ci.delivery
    if host is None:
        return PipelineDelivery(change=change, how=how)
    address = host.comment(change) if how == "comment" else host.open_draft(change)
    return PipelineDelivery(change=change, how=how, address=address)


def require_change(prepared: PipelineDelivery) -> DeliveredChange:
    """Return the change of a delivery that no gate has refused."""
    if prepared.change is None:
        raise ValueError("a refused change cannot be delivered")
    return prepared.change


def check_open_heals(prepared: PipelineDelivery, host: CodeHost | None, settings: Settings) -> Refusal | None:
    """Return a refusal if the service has too many open heals of the branch, or this one already.

    This is asked before time is spent on verification.

    Raises:
        PrerequisiteError: The token lacks permission.
        CodeHostError: The service refuses.
    """
    if host is None or prepared.change is None:
        return None
    commit, open_heals = prepared.change.parent, host.open_heals()
    if commit in open_heals.rejected:
        return Refusal(reason="rejected", detail=commit[:12])
    # A comment takes the place of the earlier one, which therefore does not count in addition to it.
    delivered = {*open_heals.branches}
    if settings.ci.delivery != "comment":
        delivered |= {*open_heals.commented}
    if commit in delivered:
        return Refusal(reason="already_delivered", detail=commit[:12])
    if (heals := prepared.heals + len(delivered)) >= settings.ci.max_heals:
        return Refusal(
            reason="too_many_heals", detail=f"{heals} of {settings.ci.max_heals}, including open ones"
        )
    return None


def open_host(pipeline: Pipeline, settings: Settings, show: RequestPrinter | None = None) -> CodeHost | None:
    """Return the client of the service that runs the pipeline; `None` if only the artifact is delivered.

    Args:
        show: For a dry run: shows the requests. Without a token, nothing is sent then.

    Raises:
        UsageError: There is no service, or the pipeline has no branch.
        PrerequisiteError: The token is missing.
    """
    if settings.ci.delivery == "artifact":
        return None
    if pipeline.host == "none":
        raise UsageError(
            "no code host runs this pipeline, so the change cannot be delivered to one",
            remedy="set ci.delivery=artifact, and apply fix.patch",
        )
    if not pipeline.branch:
        raise UsageError("this pipeline has no branch", remedy="set ci.delivery=artifact")
    token = settings.keys.ci if show is not None else require_token(settings)
    return GitHub(pipeline, token, show) if pipeline.host == "github" else GitLab(pipeline, token, show)


def open_github(pipeline: Pipeline, settings: Settings, show: RequestPrinter | None = None) -> GitHub:
    """Return the client of GitHub, for what only GitHub has; raises as `open_host` does, also for a dry run."""
    if pipeline.host != "github":
        raise UsageError("no workflow of GitHub runs this command", remedy="see docs/ci.md")
    return GitHub(pipeline, require_token(settings), show)


def require_token(settings: Settings) -> SecretStr:
    """Return the token of the code host."""
    if settings.keys.ci is None:
        raise PrerequisiteError("there is no token for the delivery", remedy="set SUTURE_KEYS_CI")
    return settings.keys.ci


def _gate_certificate(
    certificate: Certificate,
    task: Task,
    after: Mapping[str, bytes],
    changed: Sequence[str],
    settings: Settings,
) -> Refusal | None:
    """Return the refusal of a certificate for another command, or of its change by a gate."""
    # Which tests are left out depends on the base, so only the rest of the command is compared.
    command, _ = split_deselected(certificate.task.test_command)
    is_same = (certificate.task.tools, command) == (task.tools, split_deselected(task.test_command)[0])
    if not is_same or certificate.task.kind != "heal":
        return Refusal(reason="other_command", detail=" ".join(certificate.task.full_command)[:200])
    return check_change_gates(
        settings,
        files=changed,
        lines=count_changed_lines(line_edits_between(task.files, after)),
        confidence=certificate.confidence,
        evidence=certificate.evidence,
        capabilities=certificate.capabilities,
    )


def _make_change(
    certificate: Certificate,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    changed: Sequence[str],
    checkout: Checkout,
) -> DeliveredChange:
    _require_committed(checkout, changed, before)
    prefix = checkout.repository.prefix
    edits = tuple(
        widen_to_replacement(edit, before, prefix)
        for edit in line_edits_between(before, after)
        if edit.path in before  # a new file has no line that a suggestion could replace
    )
    can_suggest = all(path in before for path in changed) and all(
        is_shown_whole("\n".join(edit.new)) for edit in edits
    )
    file_text = _as_one_word(changed[0]) + (f" and {len(changed) - 1} more" if len(changed) > 1 else "")
    title = f"Heal {file_text[:MAX_TITLE_CHARS]}"
    fixed_lines = [f"- {_as_one_word(name)}" for name in certificate.fixed[:MAX_FIXED_TESTS]]
    body = "\n".join(["Passing now:", *fixed_lines, ""]) if fixed_lines else ""
    trailer = f"Healed-by: suture {version('suture')} (certificate {certificate.seal[:12]})"
    command, left_out = split_deselected(certificate.task.test_command)
    executable_paths = _executable_paths(checkout, changed)
    return DeliveredChange(
        parent=checkout.commit,
        seal=certificate.seal,
        title=title,
        message=f"{title}\n\n{body}\n{trailer}\n",
        text=render_comment(certificate, checkout.commit, command, left_out),
        files=tuple(
            ChangedFile(
                path=prefix + path,
                content=after[path],
                is_program=path in executable_paths,
                is_new=path not in before,
            )
            for path in changed
        ),
        suggestions=edits if can_suggest else (),
    )


def _as_one_word(name: str) -> str:
    """Return an untrusted name as one word: services obey `[skip ci]` and `closes #1` in commit messages."""
    return "_".join(escape_unprintable(name).split())


def _require_committed(checkout: Checkout, paths: Sequence[str], before: Mapping[str, bytes]) -> None:
    """Check that the files here are those of the commit, before committing on top of it."""
    blobs = checkout.repository.blobs_at(checkout.commit, paths)
    committed = dict(zip(blobs, checkout.repository.read_blobs(list(blobs.values())), strict=True))
    differing = [path for path in paths if committed.get(path) != before.get(path)]
    if differing:
        raise UsageError(
            f"{differing[0]!r} differs from commit {checkout.commit[:12]}",
            remedy="deliver from a fresh checkout, without line-end conversion by git",
        )


def _require_tested_commit(checkout: Checkout, tested: Mapping[str, bytes]) -> None:
    """Check that a commit has the files that a run has tested, except those that git ignores."""
    repository = checkout.repository
    committed = repository.read_tree(checkout.commit)
    missing = [path for path in tested if path not in committed]
    options = ("-z", "--others", "--ignored", "--exclude-standard")
    ignored = repository.git("ls-files", *options, "--", *missing).split(b"\0") if missing else ()
    accepted = set(map(os.fsdecode, ignored))
    for path, content in tested.items():
        if committed.get(path) != content and path not in accepted:
            raise UsageError(
                f"{path!r} in commit {checkout.commit[:12]} is not as the run has tested it",
                remedy="commit your changes, and repair the project again",
            )


def _executable_paths(checkout: Checkout, paths: Sequence[str]) -> set[str]:
    """Return those of the paths that git stores as executable files."""
    prefix = checkout.repository.prefix
    tree = checkout.repository.git(
        "ls-tree", "-z", "--full-tree", checkout.commit, "--", *(prefix + path for path in paths)
    )
    entries = (entry.partition(b"\t") for entry in tree.split(b"\0")[:-1])
    return {
        name.decode("utf-8", "surrogateescape").removeprefix(prefix)
        for fields, _, name in entries
        if fields.startswith(b"100755")
    }
