"""The interpreter with which the certificate of a run folder is replayed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from suture.api import verify
from suture.core.ledger import Ledger, RunFolder
from suture.core.ledger.kinds import RunStarted
from suture.core.records import Task, content_hash, encode_record
from suture.core.settings import Settings
from suture.errors import PrerequisiteError
from suture.judge.certificates.certificate import Certificate, render_certificate, seal_certificate
from suture.project.languages import Interpreter
from suture.sandbox import BubblewrapSandbox

RECORDED = Interpreter(
    executable=sys.executable,
    prefix=sys.prefix,
    base_prefix=sys.base_prefix,
    version="3",
    site_packages=(),
    origin="of the run",
)


def write_certified_run(runs: Path) -> Path:
    """Write a run folder with an interpreter and a certificate that cannot be confirmed."""
    folder = runs / "2026-certified"
    (folder / "blobs").mkdir(parents=True)
    with Ledger(RunFolder(folder).ledger_path) as ledger:
        interpreter = encode_record(RECORDED)
        ledger.append(
            RunStarted(kind="heal", statement="", recipe="adaptive", model="none", interpreter=interpreter)
        )
    certificate = Certificate(
        task=Task(statement="", kind="heal", test_command=("python", "-m", "pytest")),
        project={"a.py": "0" * 64},
        project_hash=content_hash({"a.py": "0" * 64}),
        diff="",
        result={},
        evidence="nonce",
        after={},
    )
    (folder / "certificate.json").write_text(render_certificate(seal_certificate(certificate)))
    return folder


@pytest.fixture
def settings_with_missing_python(settings: Settings, tmp_path: Path) -> Settings:
    """Return settings that name a Python which does not exist."""
    sandbox_settings = settings.sandbox.model_copy(update={"python": tmp_path / "no-python"})
    return settings.model_copy(update={"sandbox": sandbox_settings})


async def test_a_run_in_the_home_of_the_settings_is_replayed_with_its_own_interpreter(
    settings_with_missing_python: Settings, sandbox: BubblewrapSandbox
) -> None:
    settings = settings_with_missing_python
    folder = write_certified_run(settings.paths.home / "runs")
    claims = [claim async for claim in verify(folder, settings=settings, sandbox=sandbox)]
    assert [(claim.name, claim.ok) for claim in claims][-1] == ("project", False)


async def test_a_run_of_somebody_else_is_replayed_with_the_interpreter_of_the_settings(
    settings_with_missing_python: Settings, sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    folder = write_certified_run(tmp_path / "copied")
    with pytest.raises(PrerequisiteError, match="no-python"):
        [claim async for claim in verify(folder, settings=settings_with_missing_python, sandbox=sandbox)]
