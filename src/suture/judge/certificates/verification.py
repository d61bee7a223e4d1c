"""Find and load certificates, and replay that of a result with its project's files and interpreter."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

from suture.core.ledger import (
    RunFolder,
    find_first_payload,
    find_run,
    get_run_state,
    load_task,
    read_ledger,
)
from suture.core.ledger.kinds import RunStarted
from suture.core.safe_files import read_regular_file
from suture.core.settings import Settings
from suture.errors import StorageError, UsageError
from suture.judge.certificates.certificate import (
    CERTIFICATE_FILE,
    MAX_BYTES,
    AnyCertificate,
    Certificate,
    parse_any_certificate,
    parse_certificate,
    sha256_hex,
)
from suture.judge.certificates.certificate_replay import ReplayedClaim, replay_certificate
from suture.judge.certificates.static_checks import revert_certified_change
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.languages.diagnostics import find_runtime_language
from suture.project.recorded_task import load_interpreter
from suture.project.workspace import take_snapshot_with_parents
from suture.sandbox import Sandbox, discover_programs


def locate_judgement(name: str, home: Path) -> Path:
    """Return the file of a judgement's certificate that is kept for another program, which may not exist.

    Args:
        name: The id of the judgement.
        home: The folder of Suture's state.
    """
    return home / "judgements" / f"{name}.json"


def find_certificate(name: str | Path, home: Path) -> Path:
    """Return the path of a certificate.

    Args:
        name: The file, its run folder, a run (`last`, an id, or the unique start or end of one), or the id of a
            judgement.
        home: The folder that holds the runs.

    Raises:
        UsageError: There is no such file or run, or the run has no certificate.
    """
    path = Path(name)
    if os.path.isfile(path):  # noqa: PTH113  # any string may be a name; Path.is_file raises for some
        return path
    if path.name == str(name) and os.path.isfile(locate_judgement(path.name, home)):  # noqa: PTH113 # as above
        return locate_judgement(path.name, home)
    is_folder = os.path.isdir(path)  # noqa: PTH112 # as above
    if not is_folder and path.suffix == ".json":
        raise UsageError(f"there is no file {str(name)!r}", remedy="name a certificate or a run")
    run = RunFolder(path) if is_folder else find_run(home, str(name))
    folder = run.path
    if not (folder / CERTIFICATE_FILE).is_file():
        if run.ledger_path.is_file() and get_run_state(run, read_ledger(run.ledger_path)) == "running":
            raise UsageError(
                f"run {folder.name} is still running, so it has no certificate yet",
                remedy="wait until it has ended, or name another run: suture history",
            )
        raise UsageError(
            f"run {folder.name} has no certificate",
            remedy="choose a run that a search or a model healed: suture history",
        )
    return folder / CERTIFICATE_FILE


def load_certificate(path: Path) -> Certificate:
    """Load the certificate of a result that a file holds.

    Raises:
        UsageError: The file cannot be read.
        InvalidCertificate: It is not a certificate of this format, or was changed since it was sealed.
    """
    return parse_certificate(_read_certificate(path))


def load_any_certificate(path: Path) -> AnyCertificate:
    """Load the certificate of a result or of a judgement; raises as `load_certificate` does."""
    return parse_any_certificate(_read_certificate(path))


def _read_certificate(path: Path) -> bytes:
    try:
        content = read_regular_file(path, MAX_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None:
        raise UsageError(f"{str(path)!r} cannot be read: it is not a regular file")
    return content


async def verify_certificate(
    certificate: Certificate, folder: Path, project: Path | None, sandbox: Sandbox, settings: Settings
) -> AsyncIterator[ReplayedClaim]:
    """Replay the certificate of a result, and yield each statement with what was found.

    The first statement that is not `ok` is the last.

    Args:
        folder: The folder of the certificate's file.
        project: The project's folder, with or without the change; by default the files in the run folder.
        sandbox: A sandbox in which nothing of the original run is left.
        settings: The limits of the replay.

    Raises:
        UsageError: Neither a project nor a run folder has the files.
        PrerequisiteError: There is no sandbox or no interpreter.
        SandboxError: The sandbox failed.
    """
    # A language whose plugin is missing refutes nothing, so looking it up raises a UsageError here.
    LANGUAGES[certificate.task.language]
    language, links = find_runtime_language(certificate.task), None
    left_out: list[str] = []
    if project is None:
        files, interpreter = _find_files_and_interpreter(certificate, folder, settings)
    else:
        snapshot = take_snapshot_with_parents(project, secrets=settings.sandbox.secrets)
        interpreter = discover_programs(snapshot.root, os.environ, language, settings.sandbox.python)
        # The folder of git is in every project and in no snapshot: its absence tells the reader nothing.
        left_out = [path for path, reason in snapshot.skipped.items() if reason != "version_control"]
        files, links = revert_certified_change(certificate, snapshot.files), snapshot.links
    claims = replay_certificate(
        certificate, files, sandbox, settings, interpreter, left_out=left_out, links=links
    )
    async for claim in claims:
        yield claim


def _find_files_and_interpreter(
    certificate: Certificate, folder: Path, settings: Settings
) -> tuple[Mapping[str, bytes], Interpreter]:
    """Return the files in the folder of a run, and its tests' interpreter."""
    run = RunFolder(folder)
    files = _load_project_files(run, certificate)
    return files, _find_interpreter(run, find_runtime_language(certificate.task), settings)


def _load_project_files(run: RunFolder, certificate: AnyCertificate) -> dict[str, bytes]:
    """Return the certified project's files that a run folder has: in the run's task, or each as a blob.

    Raises:
        UsageError: The folder has no task, such as a certificate's folder that was shared, and files are missing.
    """
    files: dict[str, bytes] = {}
    try:
        task = load_task(run)
    except (StorageError, ValueError):
        task = None
    for path, sha256 in certificate.project.items():
        content = task.files.get(path) if task is not None else None
        if content is not None and sha256_hex(content) == sha256:
            files[path] = content
            continue
        with suppress(StorageError):
            files[path] = run.load_blob(sha256)
    if task is None and len(files) < len(certificate.project):
        raise UsageError(
            "the certificate's folder does not have the project's files",
            remedy="name the project: --project PATH",
        )
    # With a task, the replay reports which files are missing.
    return files


def _find_interpreter(run: RunFolder, language: str, settings: Settings) -> Interpreter:
    """Return the interpreter of the run if it still exists and the run is the user's own.

    Otherwise it is the one that the settings name, or by default the one that `python` means in the user's
    current folder.
    """
    try:
        started = find_first_payload(run.ledger_path, RunStarted)
        recorded = load_interpreter(started, run, settings.paths.home) if started else None
    except (StorageError, ValueError):
        recorded = None
    return recorded or discover_programs(Path.cwd(), os.environ, language, settings.sandbox.python)
