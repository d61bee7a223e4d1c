"""Verify a certificate file: find it, find the project's files and interpreter, and replay it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path

from suture.core.ledger import RunFolder, find_run, first_payload, read_ledger
from suture.core.ledger.kinds import RunStarted
from suture.core.records import Language
from suture.core.safe_files import read_regular_file
from suture.core.settings import Settings
from suture.errors import StorageError, UsageError
from suture.judge.certificates.certificate import (
    CERTIFICATE_FILE,
    MAX_BYTES,
    Certificate,
    InvalidCertificate,
    parse_certificate,
)
from suture.judge.certificates.certificate_replay import ReplayedClaim, replay_certificate
from suture.judge.certificates.static_checks import revert_certified_change
from suture.project.languages import LANGUAGES, Interpreter
from suture.project.recorded_task import load_interpreter
from suture.project.workspace import take_snapshot
from suture.sandbox import Sandbox, discover_programs, open_sandbox


def find_certificate(name: str | Path, home: Path) -> Path:
    """Return the path of a certificate.

    Args:
        name: The file, its run folder, or a run: `last`, an id, or the unique start or end of one.
        home: The folder that holds the runs.

    Raises:
        UsageError: There is no such file or run, or the run has no certificate.
    """
    path = Path(name)
    if os.path.isfile(path):  # noqa: PTH113  # any text may be a name; Path.is_file raises for some
        return path
    is_folder = os.path.isdir(path)  # noqa: PTH112 # as above
    folder = path if is_folder else find_run(home, str(name)).path
    if not (folder / CERTIFICATE_FILE).is_file():
        raise UsageError(
            f"run {folder.name} has no certificate", remedy="choose a run that healed: suture history"
        )
    return folder / CERTIFICATE_FILE


def load_certificate(path: Path) -> Certificate:
    """Load the certificate that a file holds.

    Raises:
        UsageError: The file cannot be read.
        InvalidCertificate: It is no certificate of this format, or was changed since it was sealed.
    """
    try:
        content = read_regular_file(path, MAX_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None:
        raise UsageError(f"{str(path)!r} cannot be read: it is not a regular file")
    return parse_certificate(content)


async def verify_certificate_file(
    name: str | Path, project: Path | None, settings: Settings, sandbox: Sandbox | None = None
) -> AsyncIterator[ReplayedClaim]:
    """Replay a certificate in a clean sandbox, and yield each statement with what was found.

    The first statement that is not `ok` is the last.

    Args:
        name: The certificate, as in `find_certificate`.
        project: The project's folder, with or without the change; by default the files in the run folder.
        settings: The limits of the replay.
        sandbox: The sandbox to use; by default the one that the settings name.

    Raises:
        UsageError: There is no such certificate, or neither a project nor a run folder has the files.
        PrerequisiteError: There is no sandbox or no interpreter.
        SandboxError: The sandbox failed.
    """
    path = find_certificate(name, settings.paths.home)
    try:
        certificate = load_certificate(path)
    except InvalidCertificate as refused:
        yield ReplayedClaim(name="certificate", ok=False, detail=str(refused))
        return
    # A language whose plugin is missing refutes nothing, so looking it up raises a UsageError here.
    LANGUAGES[certificate.task.language]
    files, left_out, interpreter = _find_files_and_interpreter(certificate, path.parent, project, settings)
    replay_sandbox = sandbox or open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        claims = replay_certificate(
            certificate, files, replay_sandbox, settings, interpreter, left_out=left_out
        )
        async for claim in claims:
            yield claim
    finally:
        if replay_sandbox is not sandbox:
            await replay_sandbox.close()


def _find_files_and_interpreter(
    certificate: Certificate, folder: Path, project: Path | None, settings: Settings
) -> tuple[Mapping[str, bytes], Collection[str], Interpreter | None]:
    """Return the files to check against the certified hashes, the paths not read, and the tests' interpreter."""
    if project is not None:
        snapshot = take_snapshot(project, secrets=settings.sandbox.secrets)
        language = certificate.task.language
        interpreter = discover_programs(snapshot.root, os.environ, language, settings.sandbox.python)
        # The folder of git is in every project and in no snapshot: that it is missing tells the reader nothing.
        left_out = [path for path, reason in snapshot.skipped.items() if reason != "version_control"]
        return revert_certified_change(certificate, snapshot.files), left_out, interpreter
    run = RunFolder(folder)
    if not (folder / "blobs").is_dir():
        raise UsageError(
            "the certificate's folder does not have the project's files",
            remedy="name the project: --project PATH",
        )
    files: dict[str, bytes] = {}
    for path, sha256 in certificate.project.items():
        try:
            files[path] = run.load_blob(sha256)
        except StorageError:
            continue  # the replay reports which files are missing
    return files, (), _find_interpreter(run, certificate.task.language, settings)


def _find_interpreter(run: RunFolder, language: Language, settings: Settings) -> Interpreter:
    """Return the interpreter of the run if it still exists and the run is the user's own.

    Otherwise it is the one that the settings name, or by default the one that `python` means in the user's
    current folder.
    """
    try:
        started = first_payload(read_ledger(run.ledger_path).events, RunStarted)
        recorded = load_interpreter(started, run, settings.paths.home) if started else None
    except (StorageError, ValueError):
        recorded = None
    return recorded or discover_programs(Path.cwd(), os.environ, language, settings.sandbox.python)
