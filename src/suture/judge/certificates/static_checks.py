"""What a certificate says of a project's files and of its change, found out without running anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from suture.core.records import Candidate, content_hash
from suture.judge import Suite, find_protected_files, is_dependency_file
from suture.judge.certificates.certificate import Certificate
from suture.judge.certificates.certificate_format import digest
from suture.project.languages import detect_file_languages
from suture.project.test_commands import files_deciding
from suture.project.workspace import (
    DiffDoesNotApply,
    apply_diff,
    default_protected,
    is_protected,
    is_test_file,
    overlay_candidate,
)
from suture.sandbox.packages import is_lock_path, manifest_name_for

MOST_LISTED = 5
BUILT = frozenset((".pyi", ".pyc", ".pyd", ".so"))
NOWHERE = Path("/nowhere")
"""A certificate names files by their paths in the project; a folder of some machine means nothing in it."""


class ClaimRefuted(Exception):
    """What a certificate says is not so."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(detail)
        self.name = name
        self.detail = detail


def require(holds: bool, name: str, detail: str) -> None:
    """Raise `ClaimRefuted` where a claim does not hold."""
    if not holds:
        raise ClaimRefuted(name, detail)


def require_equal(name: str, said: Mapping[str, object], found: Mapping[str, object]) -> None:
    """Raise `ClaimRefuted` where what is certified is not what was found; it names some of what differs."""
    keys = sorted(key for key in said.keys() | found.keys() if said.get(key) != found.get(key))
    differences = [
        f"{key} (certified {said.get(key)!r}, found {found.get(key)!r})" for key in keys[:MOST_LISTED]
    ]
    more = f" and {len(keys) - MOST_LISTED} more" if len(keys) > MOST_LISTED else ""
    require(not keys, name, "; ".join(differences) + more)


def revert_certified_change(certificate: Certificate, project: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """A project as the certificate needs it: where the change is in it already, it is taken back.

    Args:
        certificate: Of one change; each of its claims is found out anew.
        project: The files, with the change or without.
    """
    hashes = {path: digest(project[path]) for path in certificate.result if path in project}
    if hashes != certificate.result:
        return project
    try:
        return apply_diff(project, certificate.diff, reverse=True)
    except DiffDoesNotApply:
        return project


def check_project_files(certificate: Certificate, project: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files that a certificate was made for, each by its hash; more of them that decide refute it."""
    require(
        certificate.project_hash == content_hash(dict(certificate.project)),
        "project",
        "the hash of the list of files is not that of the list",
    )
    wrong = [
        path
        for path, hash_ in certificate.project.items()
        if path not in project or digest(project[path]) != hash_
    ]
    listed = ", ".join(sorted(wrong)[:MOST_LISTED])
    require(not wrong, "project", f"{len(wrong)} files are missing, or not as certified: {listed}")
    more = sorted(path for path in project.keys() - certificate.project.keys() if _decides(path))
    listed = ", ".join(more[:MOST_LISTED])
    require(
        not more or certificate.task.kind == "write",
        "project",
        f"not proved for {len(more)} files more: {listed}",
    )
    return {path: project[path] for path in certificate.project}


def _decides(path: str) -> bool:
    """Whether a file may change what the tests say: code, a test, a setting of the project's."""
    is_code = PurePosixPath(path).suffix in BUILT or bool(detect_file_languages((path,)))
    return is_code or is_protected(path, default_protected())


def check_certified_diff(certificate: Certificate, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files with the change, which leads to what is certified and nowhere else."""
    try:
        after = apply_diff(files, certificate.diff)
    except DiffDoesNotApply as fault:
        raise ClaimRefuted("diff", str(fault)) from fault
    changed = {path: digest(content) for path, content in after.items() if files.get(path) != content}
    require(bool(changed), "diff", "it changes nothing")
    require(files.keys() <= after.keys(), "diff", "it deletes a file")
    require_equal("diff", certificate.result, changed)
    return after


def check_changed_paths(
    certificate: Certificate, candidate: Candidate, suite: Suite, after: Mapping[str, bytes]
) -> None:
    """A diff that changes what decides proves nothing, whatever the certificate calls protected."""
    task = suite.task
    paths = candidate.files.keys()
    require(
        task.kind == "heal" or task.project is not None or not paths & task.files.keys(),
        "files",
        "code that was there is no new code",
    )
    closed = {path for path in paths if is_protected(path, default_protected())}
    if task.kind == "heal":
        closed |= paths & set(files_deciding(task.test_command, after, NOWHERE))
    elif not task.test_command:
        closed -= set(task.modules)  # asserts run apart from them, whatever they are called
        if task.project is not None and task.project.is_new:
            closed = {path for path in closed if not is_test_file(path)}  # they decide nothing
    if task.project is not None and task.project.is_new:  # it says which packages there are, and no more
        closed = {
            path for path in closed if path != manifest_name_for(task.language) and not is_lock_path(path)
        }
    closed = {path for path in closed if not is_dependency_file(path, candidate.files, suite)}
    closed |= set(find_protected_files(candidate.files, suite))
    require(
        not task.test_command or not any(is_protected(path, default_protected()) for path in task.modules),
        "files",
        f"the module {task.module!r} decides, or one beside it",
    )
    require(not closed, "files", f"the diff changes what decides: {', '.join(sorted(closed)[:MOST_LISTED])}")
    require(
        overlay_candidate(task.files, candidate.files) == dict(after),
        "files",
        "the result is not what a run can make",
    )
