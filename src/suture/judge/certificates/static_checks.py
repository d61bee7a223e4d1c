"""Checks of a certificate that run nothing: the project's files, the diff, and the paths that it changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from suture.core.records import Candidate, content_hash
from suture.judge import Suite, find_protected_files, is_dependency_file
from suture.judge.certificates.certificate import AnyCertificate, Certificate, sha256_hex
from suture.judge.runners.installed_modules import list_importable_modules
from suture.project.languages import Interpreter, detect_file_languages
from suture.project.languages.diagnostics import CONFIGURATION_GLOBS
from suture.project.test_commands import find_deciding_files, find_deciding_tool_files
from suture.project.workspace import (
    DiffDoesNotApply,
    apply_diff,
    default_protected,
    is_protected,
    is_test_file,
    overlay_candidate,
)
from suture.sandbox.packages import is_lock_path, manifest_name_for

ClaimName = Literal[
    "certificate",
    "project",
    "diff",
    "environment",
    "checks",
    "files",
    "packages",
    "before",
    "after",
    "coverage",
    "mutation",
    "signs",
    "confidence",
    "tests",
    "guards",
    "findings",
    "policy",
    "verdict",
]
"""What one statement of a certificate is about. The last five, and `environment`, are in judgements."""

MAX_LISTED = 5
"""Paths or ids that one message names."""
CACHE_FOLDER = "__pycache__"
BYTECODE_SUFFIXES = frozenset((".pyc", ".pyo"))
NATIVE_SUFFIXES = frozenset((".so", ".pyd", ".dll", ".dylib", ".node"))
"""Suffixes of machine code that an import or a `require` can load."""
IMPORTABLE_SUFFIXES = BYTECODE_SUFFIXES | NATIVE_SUFFIXES | {".pyi", ".egg", ".whl", ".zip", ".egg-link"}
"""Suffixes of files that are not source code, and that Python can import, or find modules with.

Python itself ignores `.pyi`; it is listed to be safe.
"""
SITE_MODULES = frozenset(("sitecustomize", "usercustomize"))
"""Modules that Python imports at start-up if they exist."""
NOWHERE = Path("/nowhere")
"""Stands for the project's folder: a certificate names files by their paths in the project alone."""


class ClaimRefuted(Exception):
    """A statement of a certificate is false."""

    def __init__(self, name: ClaimName, detail: str) -> None:
        super().__init__(detail)
        self.name = name
        self.detail = detail


def require(holds: bool, name: ClaimName, detail: str) -> None:
    """Raise `ClaimRefuted` unless a statement holds."""
    if not holds:
        raise ClaimRefuted(name, detail)


def require_equal(name: ClaimName, certified: Mapping[str, object], actual: Mapping[str, object]) -> None:
    """Raise `ClaimRefuted` unless the certified values are the actual ones."""
    keys = sorted(key for key in certified.keys() | actual.keys() if certified.get(key) != actual.get(key))
    differences = [
        f"{key} (certified {certified.get(key)!r}, found {actual.get(key)!r})" for key in keys[:MAX_LISTED]
    ]
    more = f" and {len(keys) - MAX_LISTED} more" if len(keys) > MAX_LISTED else ""
    require(not keys, name, "; ".join(differences) + more)


def revert_certified_change(certificate: AnyCertificate, project: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the project's files before the certified change, which is reverted if it was applied.

    Args:
        project: The project's files, path -> content, with or without the change.
    """
    hashes = {path: sha256_hex(project[path]) for path in certificate.result if path in project}
    if hashes != certificate.result:
        return project
    try:
        return apply_diff(project, certificate.diff, reverse=True)
    except DiffDoesNotApply:
        return project


def check_project_files(
    certificate: AnyCertificate, project: Mapping[str, bytes], interpreter: Interpreter | None
) -> dict[str, bytes]:
    """Return the files that a certificate was made for, each checked by its hash.

    A further file that could change what the tests say refutes the certificate, unless new code was certified
    with the files of its task alone (see `find_further_files`). A file in the place of one that the change creates
    refutes it too: then the change was not made to this project. A compiled file that Python would run in place of
    a source refutes any certificate: it must be about the code that a reader sees.

    Args:
        project: The project's files, path -> content.
        interpreter: What `python` means in the test command.
    """
    has_hash = certificate.project_hash == content_hash(dict(certificate.project))
    require(has_hash, "project", "the list of files does not have the certified hash")
    paths = certificate.project.keys() | certificate.result.keys()
    compiled = find_replacing_files(paths, list_importable_modules(interpreter))
    listed = ", ".join(compiled[:MAX_LISTED])
    require(
        not compiled,
        "project",
        f"{len(compiled)} compiled file(s) or cache(s) could run in place of the sources: {listed}",
    )
    wrong = [
        path
        for path, sha256 in certificate.project.items()
        if path not in project or sha256_hex(project[path]) != sha256
    ]
    listed = ", ".join(sorted(wrong)[:MAX_LISTED])
    require(not wrong, "project", f"{len(wrong)} file(s) are missing or differ: {listed}")
    occupied = sorted(project.keys() & (certificate.result.keys() - certificate.project.keys()))
    listed = ", ".join(occupied[:MAX_LISTED])
    require(not occupied, "project", f"the change creates files that exist with another content: {listed}")
    added = find_further_files(certificate, project)
    listed = ", ".join(added[:MAX_LISTED])
    require(
        not added or _stands_alone(certificate),
        "project",
        f"{len(added)} further file(s) may change the result: {listed}",
    )
    return {path: project[path] for path in certificate.project}


def check_links(
    certified: Mapping[str, str], paths: Iterable[str], actual: Mapping[str, str] | None = None
) -> str:
    """Return the certified links of a project to its folders as text; empty if there are none.

    A link in the place of a file or folder, or to anything but a folder of the project, refutes a certificate.

    Args:
        certified: Path of a link -> the folder that it leads to.
        paths: The files before and after the change.
        actual: The links of the verifier's project; `None` if they are not known.
    """
    names = set(paths)
    folders = {folder.as_posix() for path in names for folder in PurePosixPath(path).parents} - {"."}
    wrong = [
        link
        for link, folder in certified.items()
        if folder not in folders
        or link in names | folders
        or PurePosixPath(link).as_posix() != link
        or {"..", "/", "."} & {*PurePosixPath(link).parts}
    ]
    require(
        not wrong, "project", f"these are no links to folders of the project: {', '.join(wrong[:MAX_LISTED])}"
    )
    if actual is not None:
        require_equal("project", certified, actual)
    return (
        "; links: " + ", ".join(f"{link} -> {folder}" for link, folder in certified.items())
        if certified
        else ""
    )


def find_further_files(certificate: AnyCertificate, project: Iterable[str]) -> list[str]:
    """Return the project's files that the certificate does not name and that could change the result, sorted."""
    return find_deciding_paths({*project} - certificate.project.keys())


def _stands_alone(certificate: AnyCertificate) -> bool:
    """Return whether new code was certified with the files of its task alone, next to which there may be others.

    That holds for a new project, for code without a test command, and for a command that names its test files. A
    command that runs whichever tests there are says nothing about a project from which some were left out.
    """
    if not isinstance(certificate, Certificate) or certificate.task.kind != "write":
        return False
    task = certificate.task
    if task.project is not None:
        return task.project.is_new
    tests = {path for path in certificate.project if is_test_file(path)}
    return not task.test_command or bool(tests.intersection(task.test_command))


def find_replacing_files(paths: Collection[str], importable: Collection[str]) -> list[str]:
    """Return the compiled files that Python would run in place of a source or of another module, sorted.

    Bytecode and caches always count: with the right header Python runs them and never reads the source. Machine
    code counts if it has the name of a module that a reader would expect to run. A compiled module that alone
    has its name, as a project's build leaves it, is what the sources import, and does not count.

    Args:
        paths: Paths relative to the project root.
        importable: Names of the modules that Python can import from outside of the project.
    """
    sources = [PurePosixPath(path) for path in paths if path.endswith(".py")]
    modules = {source.with_suffix("") for source in sources}
    modules |= {folder for source in sources for folder in source.parents}
    return sorted(
        path
        for path in paths
        if _is_bytecode(path) or _replaces_module(PurePosixPath(path), modules, importable)
    )


def _is_bytecode(path: str) -> bool:
    file = PurePosixPath(path)
    return CACHE_FOLDER in file.parts or file.suffix in BYTECODE_SUFFIXES


def _replaces_module(
    file: PurePosixPath, modules: Collection[PurePosixPath], importable: Collection[str]
) -> bool:
    """Return whether a file of machine code has the name of a source, or of a module from elsewhere.

    Args:
        file: Path relative to the project root.
        modules: The project's modules and packages by their paths without a suffix.
        importable: Names of the modules that Python can import from outside of the project.
    """
    if file.suffix not in NATIVE_SUFFIXES:
        return False
    name = file.name.partition(".")[0]  # `fast.cpython-311-x86_64-linux-gnu.so` is the module `fast`
    # Outside of a package, the folder may be on `sys.path`, where the file replaces an installed module.
    is_in_package = file.with_name("__init__") in modules
    is_known = name in importable or name in SITE_MODULES
    return file.with_name(name) in modules or (is_known and not is_in_package)


def find_deciding_paths(paths: Iterable[str]) -> list[str]:
    """Return the paths of files that may change what the tests say, sorted.

    These are code, compiled code and caches, tests, and files that configure a test run or Python's start.
    """
    return sorted(path for path in paths if _may_decide(path))


def _may_decide(path: str) -> bool:
    is_code = PurePosixPath(path).suffix in IMPORTABLE_SUFFIXES or bool(detect_file_languages((path,)))
    return is_code or _is_bytecode(path) or is_protected(path, default_protected())


def check_certified_diff(certificate: Certificate, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with the change applied, and check that the result is exactly the certified one."""
    try:
        after = apply_diff(files, certificate.diff)
    except DiffDoesNotApply as fault:
        raise ClaimRefuted("diff", str(fault)) from fault
    changed = {path: sha256_hex(content) for path, content in after.items() if files.get(path) != content}
    require(bool(changed), "diff", "the diff changes nothing")
    require(files.keys() <= after.keys(), "diff", "the diff deletes a file")
    require_equal("diff", certificate.result, changed)
    return after


def check_changed_paths(
    certificate: Certificate, candidate: Candidate, suite: Suite, after: Mapping[str, bytes]
) -> None:
    """Refute a diff that changes protected files, which are those that decide the verdict.

    What the certificate itself calls protected does not count here, because its author chose it.
    """
    task = suite.task
    paths = candidate.files.keys()
    may_change_files = task.kind == "heal" or task.project is not None or not paths & task.files.keys()
    require(may_change_files, "files", "the task asks for new code, and the diff changes existing files")
    is_new_project = task.project is not None and task.project.is_new
    protected = {path for path in paths if is_protected(path, default_protected())}
    if task.kind == "heal":
        protected |= paths & set(find_deciding_files(task.test_command, after, NOWHERE))
        protected |= {path for path in paths if task.tools and is_protected(path, CONFIGURATION_GLOBS)}
        protected |= paths & set(find_deciding_tool_files(task.tools, after, NOWHERE))
        # Of these, `find_protected_files` compares what decides in them.
        protected -= suite.mixed_files
    elif not task.test_command:
        # Without a test command only asserts decide. They run outside of the candidate's process, so it does
        # no harm that the requested module has the name of a protected file.
        protected -= set(task.modules)
        if is_new_project:
            # Tests of a new project do not decide.
            protected = {path for path in protected if not is_test_file(path)}
    if is_new_project:
        # Manifests and lock files only name packages.
        manifest = manifest_name_for(task.language)
        protected = {path for path in protected if path != manifest and not is_lock_path(path)}
    protected = {path for path in protected if not is_dependency_file(path, candidate.files, suite)}
    # What the judge refuses in a run too, with its own exemptions: also test data, files outside of the writable
    # ones, and files that stand for a dependency or for what the tests import.
    protected |= set(find_protected_files(candidate.files, suite))
    has_protected_module = any(is_protected(path, default_protected()) for path in task.modules)
    require(
        not task.test_command or not has_protected_module,
        "files",
        f"the module {task.module!r} or one beside it is a protected file",
    )
    listed = ", ".join(sorted(protected)[:MAX_LISTED])
    require(not protected, "files", f"the diff changes protected files: {listed}")
    # A candidate is text: it keeps each file's encoding, line ends and final newline, which a diff can change.
    is_reachable = overlay_candidate(task.files, candidate.files) == dict(after)
    require(is_reachable, "files", "no candidate of a run can have this result")
