"""Events of the certification of a result and of its delivery to the user.

A result is delivered by applying it to the user's files, by a commit, or as a patch file.
"""

from __future__ import annotations

from suture.core.ledger.event import Payload
from suture.core.records import UnmeasuredReason


class CertificateWritten(Payload, kind="certificate.written"):
    """A healed result was certified.

    Attributes:
        format: Name and version of the certificate's file format.
        file: Path of the certificate.
        seal: SHA-256 of its content.
        fixed: Number of failing tests that pass now.
        edits: Number of edits in the minimised change.
        edits_found: Number of edits in the change as it was found.
        is_minimal: Whether no further edit can be removed.
        left_out: Files and functions of the change that were left out of it, because no test needs them.
        statements: Number of changed statements.
        covered: Number of these that the tests execute.
        coverage_unmeasured: Why coverage was not measured; null if it was.
        mutants: Number of deliberate mistakes (mutants) in the changed lines that were tried.
        selected: Number of deliberate mistakes that were selected; null if the time ran out before the selection.
        killed: Number of deliberate mistakes that the tests notice.
        mutation_unmeasured: Why not all selected mistakes were tried; null if they were.
        lint: Findings of the linter.
        lint_unmeasured: Why the linter did not run; null if it did.
        confidence: Confidence in the result in [0, 1] (see docs/proof.md).
    """

    format: str = ""
    file: str
    seal: str = ""
    fixed: int
    edits: int
    edits_found: int
    is_minimal: bool
    left_out: tuple[str, ...] = ()
    statements: int
    covered: int
    coverage_unmeasured: UnmeasuredReason | None = None
    mutants: int
    selected: int | None = None
    killed: int
    mutation_unmeasured: UnmeasuredReason | None = None
    lint: tuple[str, ...] = ()
    lint_unmeasured: UnmeasuredReason | None = None
    confidence: float


class _FileChange(Payload):
    """The fields that `apply.started` and `tree.applied` share."""

    root: str
    files: tuple[str, ...]
    undo: str
    folders: tuple[str, ...] = ()


class ApplyStarted(_FileChange, kind="apply.started"):
    """The user's files are about to be written.

    Attributes:
        root: Folder of the project.
        files: Files that will change.
        undo: Patch file that reverts the change.
        folders: Folders that will be created for it, the outermost first.
    """


class TreeApplied(_FileChange, kind="tree.applied"):
    """The user's files are written.

    Attributes:
        root: Folder of the project.
        files: Files that changed.
        undo: Patch file that reverts the change.
        folders: Folders that were created for it, the outermost first.
    """


class TreeUndone(Payload, kind="tree.undone"):
    """The delivery of a run was reverted.

    Attributes:
        root: Folder of the project.
        files: Files that have their content from before the run again.
        commit: Commit that reverts the run's commit.
        branch: Git branch that was deleted.
        reason: Why Suture itself reverted the delivery, such as a failed commit; empty if the user did.
    """

    root: str
    files: tuple[str, ...] = ()
    commit: str = ""
    branch: str = ""
    reason: str = ""


class CommitChecked(Payload, kind="commit.checked"):
    """The planned commit was tested without the user's own uncommitted changes.

    Attributes:
        tree: Hash of the commit's git tree, which holds its files.
        failing: Tests that do not pass, at most 10.
    """

    tree: str
    failing: tuple[str, ...]


class CommitStarted(Payload, kind="commit.started"):
    """A commit is about to be made.

    Attributes:
        root: Folder of the project.
        parent: Parent of the commit.
        branch: New git branch; empty for the one that is checked out.
    """

    root: str
    parent: str = ""
    branch: str = ""


class CommitMade(Payload, kind="commit.made"):
    """A commit was made.

    Attributes:
        root: Folder of the project.
        parent: Parent of the commit.
        branch: New git branch; empty for the one that is checked out.
        commit: Hash of the commit.
    """

    root: str
    parent: str = ""
    branch: str = ""
    commit: str


class PullRequestOpened(Payload, kind="pull_request.opened"):
    """A draft pull request with the change was opened.

    Attributes:
        address: Where it can be viewed.
    """

    address: str


class PatchWritten(Payload, kind="patch.written"):
    """The change was written into a patch file.

    Attributes:
        file: Path of the patch file.
    """

    file: str
