"""From a certificate's file to its replay: where the project's files come from, and what runs them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from suture.core.ledger import RunFolder, find_run, first_payload, read_ledger
from suture.core.ledger.kinds import RunStarted
from suture.core.records import Language
from suture.core.safe_files import read_plain
from suture.core.settings import SandboxSettings, Settings
from suture.errors import StorageError, UsageError
from suture.judge.certificates.certificate import CERTIFICATE, Certificate
from suture.judge.certificates.certificate_format import MAX_BYTES, InvalidCertificate, parse_certificate
from suture.judge.certificates.certificate_replay import ReplayedClaim, replay_certificate
from suture.judge.certificates.static_checks import revert_certified_change
from suture.project.languages import Interpreter
from suture.project.recorded_task import recorded_interpreter
from suture.project.workspace import take_snapshot
from suture.sandbox import Sandbox, discover_programs, open_sandbox


def find_certificate(name: str | Path, home: Path) -> Path:
    """The file that a certificate lies in.

    Args:
        name: The file, its run folder, or a run: `last`, an id, or the unique start or end of one.
        home: Where runs are.

    Raises:
        UsageError: There is no such file and no such run, or that run has no certificate.
    """
    path = Path(name)
    if os.path.isfile(path):  # noqa: PTH113  # it takes any text for a name
        return path
    is_folder = os.path.isdir(path)  # noqa: PTH112 # as above
    folder = path if is_folder else find_run(home, str(name)).path
    if not (folder / CERTIFICATE).is_file():
        raise UsageError(
            f"run {folder.name} has no certificate", remedy="take one that healed: suture history"
        )
    return folder / CERTIFICATE


def load_certificate(path: Path) -> Certificate:
    """The certificate in a file.

    Raises:
        UsageError: The file cannot be read.
        CertificateRefused: It is no certificate of this format, or was changed since it was sealed.
    """
    try:
        content = read_plain(path, MAX_BYTES, follow=True)
    except OSError as fault:
        raise UsageError(f"{str(path)!r} cannot be read: {fault.strerror}") from fault
    if content is None:
        raise UsageError(f"{str(path)!r} cannot be read: it is no regular file")
    return parse_certificate(content)


async def verify_file(
    name: str | Path, project: Path | None, settings: Settings, sandbox: Sandbox | None = None
) -> AsyncIterator[ReplayedClaim]:
    """Replay a certificate in a clean sandbox.

    Args:
        name: The certificate, as in `find_certificate`.
        project: The project's folder, with the change or without; the run folder's files where not given.
        settings: Whose limits hold.
        sandbox: The wall; the settings' where not given.

    Yields:
        What was found out; the first finding that is not `ok` is the last.

    Raises:
        UsageError: There is no such certificate, or the files are neither given nor beside it.
        PrerequisiteError: There is no sandbox, or no Python.
        SandboxError: The wall failed.
    """
    path = find_certificate(name, settings.paths.home)
    try:
        certificate = load_certificate(path)
    except InvalidCertificate as refused:
        yield ReplayedClaim(name="certificate", ok=False, detail=str(refused))
        return
    files, interpreter = _surroundings(certificate, path.parent, project, settings.sandbox)
    opened = sandbox or open_sandbox(settings.sandbox, keys=settings.keys, cache=settings.paths.cache)
    try:
        async for finding in replay_certificate(certificate, files, opened, settings, interpreter):
            yield finding
    finally:
        if opened is not sandbox:
            await opened.close()


def _surroundings(
    certificate: Certificate, folder: Path, project: Path | None, settings: SandboxSettings
) -> tuple[Mapping[str, bytes], Interpreter | None]:
    """The files to check against their hashes, and what `python` means."""
    if project is not None:
        snapshot = take_snapshot(project, secrets=settings.secrets)
        language = certificate.task.language
        found = discover_programs(snapshot.root, os.environ, language, settings.python)
        return revert_certified_change(certificate, snapshot.files), found
    run = RunFolder(folder)
    if not (folder / "blobs").is_dir():
        raise UsageError(
            "the project's files are not beside the certificate", remedy="name the project: --project PATH"
        )
    files: dict[str, bytes] = {}
    for path, hash_ in certificate.project.items():
        try:
            files[path] = run.get_blob(hash_)
        except StorageError:
            continue  # the replay says which files are missing
    return files, _recorded_interpreter(run, certificate.task.language)


def _recorded_interpreter(run: RunFolder, language: Language) -> Interpreter:
    """What `python` meant in the run, while that is still there; else what it means here."""
    try:
        started = first_payload(read_ledger(run.ledger_path).events, RunStarted)
        found = recorded_interpreter(started, run, Settings().paths.home) if started else None
    except (StorageError, ValueError):
        found = None
    return found or discover_programs(Path.cwd(), os.environ, language)
