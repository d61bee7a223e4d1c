"""What was proved of a result, and what was done with it."""

from __future__ import annotations

from suture.core.ledger.event import Payload
from suture.core.records import UnmeasuredReason


class CertificateWritten(Payload, kind="certificate.written"):
    """A healed result was proved.

    Attributes:
        format: Which form the certificate has.
        file: Its path.
        seal: Hash of all that it says.
        fixed: Tests that were failing and pass.
        edits: Edits that are left of the change.
        edits_found: Edits that the change had.
        is_minimal: Whether none of them can be left out.
        left_out: Parts that no test needs.
        statements: Changed statements.
        covered: How many of them the tests run.
        coverage_unmeasured: Why that was not measured, as such a code; null if it was.
        mutants: Mutants of the changed lines that were run.
        selected: How many were selected to be run; null if the time ran out before.
        killed: How many the tests notice.
        mutation_unmeasured: Why not all were run, as such a code; null if they were.
        lint: Findings of the linter.
        lint_unmeasured: Why it did not run, as a code of `suture.judge.unmeasured`; null if it did.
        confidence: In [0, 1], see docs/proof.md.
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


class _Change(Payload):
    root: str
    files: tuple[str, ...]
    undo: str
    folders: tuple[str, ...] = ()


class ApplyStarted(_Change, kind="apply.started"):
    """The user's files are about to be written.

    Attributes:
        root: The project's folder.
        files: Files that change.
        undo: A patch file that takes it back.
        folders: Folders that are made for it, the outermost first.
    """


class TreeApplied(_Change, kind="tree.applied"):
    """The user's files are written.

    Attributes:
        root: The project's folder.
        files: Files that changed.
        undo: A patch file that takes it back.
        folders: Folders that were made for it, the outermost first.
    """


class TreeUndone(Payload, kind="tree.undone"):
    """What a run did was taken back.

    Attributes:
        root: The project's folder.
        files: Files that are as they were before the run.
        commit: A commit that reverts the run's.
        branch: A branch of git's that was deleted.
        why: Why, where nobody asked for it.
    """

    root: str
    files: tuple[str, ...] = ()
    commit: str = ""
    branch: str = ""
    reason: str = ""


class CommitChecked(Payload, kind="commit.checked"):
    """What would be committed was tested without the user's own uncommitted changes.

    Attributes:
        tree: Git's hash of it.
        failing: Tests that do not pass, at most 10.
    """

    tree: str
    failing: tuple[str, ...]


class CommitStarted(Payload, kind="commit.started"):
    """A commit is about to be made.

    Attributes:
        root: The project's folder.
        parent: The commit that it comes after.
        branch: The new branch of git's; empty for what is checked out.
    """

    root: str
    parent: str = ""
    branch: str = ""


class CommitMade(Payload, kind="commit.made"):
    """A commit was made.

    Attributes:
        root: The project's folder.
        parent: The commit that it comes after.
        branch: The new branch of git's; empty for what is checked out.
        commit: Its hash.
    """

    root: str
    parent: str = ""
    branch: str = ""
    commit: str


class PatchWritten(Payload, kind="patch.written"):
    """The change was written into a patch file.

    Attributes:
        file: Its path.
    """

    file: str
