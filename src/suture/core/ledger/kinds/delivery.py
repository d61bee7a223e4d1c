"""What was proved of a result, and what was done with it."""

from __future__ import annotations

from suture.core.ledger.event import Payload, if_absent


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
        coverage_unmeasured: Why that was not measured; empty where it was.
        mutants: Mutants of the changed lines that were run.
        drawn: How many were drawn; null in ledgers that do not say.
        killed: How many the tests notice.
        mutation_unmeasured: Why not all were run; empty where they were.
        lint: Findings of the linter.
        lint_absent: Why it was not asked; empty where it was.
        confidence: In [0, 1], see docs/proof.md.
    """

    format: str = if_absent("")
    file: str
    seal: str = if_absent("")
    fixed: int
    edits: int
    edits_found: int
    is_minimal: bool
    left_out: tuple[str, ...] = if_absent(())
    statements: int
    covered: int
    coverage_unmeasured: str = if_absent("")
    mutants: int
    drawn: int | None = if_absent(None)
    killed: int
    mutation_unmeasured: str = if_absent("")
    lint: tuple[str, ...] = if_absent(())
    lint_absent: str = if_absent("")
    confidence: float


class _Change(Payload):
    root: str
    files: tuple[str, ...]
    undo: str
    folders: tuple[str, ...] = if_absent(())


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
    why: str = ""


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
    parent: str = if_absent("")
    branch: str = if_absent("")


class CommitMade(Payload, kind="commit.made"):
    """A commit was made.

    Attributes:
        root: The project's folder.
        parent: The commit that it comes after.
        branch: The new branch of git's; empty for what is checked out.
        commit: Its hash.
    """

    root: str
    parent: str = if_absent("")
    branch: str = if_absent("")
    commit: str


class PatchWritten(Payload, kind="patch.written"):
    """The change was written into a patch file.

    Attributes:
        file: Its path.
    """

    file: str
