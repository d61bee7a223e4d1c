"""The interpreter with which the certificate of a run folder is replayed."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suture.api import verify
from suture.core.ledger import Ledger, RunFolder
from suture.core.ledger.kinds import RunStarted
from suture.core.records import Task, content_hash, encode_record
from suture.core.settings import Settings
from suture.errors import PrerequisiteError, UsageError
from suture.judge.certificates.certificate import (
    Certificate,
    render_certificate,
    seal_certificate,
    sha256_hex,
)
from suture.project.languages import Interpreter
from suture.sandbox import BubblewrapSandbox

CODE = b"value = 1\n"
RECORDED = Interpreter(
    executable=sys.executable,
    prefix=sys.prefix,
    base_prefix=sys.base_prefix,
    version="3",
    site_packages=(),
    origin="of the run",
)


def write_certified_run(runs: Path, sha256: str = "0" * 64, tools: tuple[tuple[str, ...], ...] = ()) -> Path:
    """Write a run folder with a task, an interpreter and a certificate that cannot be confirmed.

    Args:
        sha256: What the certificate says about the content of the only file.
        tools: Commands of linters and type checkers.
    """
    folder = runs / "2026-certified"
    (folder / "blobs").mkdir(parents=True)
    task = Task(statement="", kind="heal", test_command=("python", "-m", "pytest"), tools=tools)
    with Ledger(RunFolder(folder).ledger_path) as ledger:
        ledger.append(
            RunStarted(
                kind="heal",
                statement="",
                recipe="adaptive",
                model="none",
                task=RunFolder(folder).save_record(replace(task, files={"a.py": CODE})),
                interpreter=encode_record(RECORDED),
            )
        )
    certificate = Certificate(
        task=task,
        project={"a.py": sha256},
        project_hash=content_hash({"a.py": sha256}),
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


async def test_the_files_of_a_run_are_those_of_its_task(
    settings: Settings, sandbox: BubblewrapSandbox
) -> None:
    folder = write_certified_run(settings.paths.home / "runs", sha256_hex(CODE))
    claims = [claim async for claim in verify(folder, settings=settings, sandbox=sandbox)]
    assert ("project", True) in [(claim.name, claim.ok) for claim in claims]


@pytest.mark.parametrize("has_blobs", [True, False])
async def test_a_folder_without_its_ledger_and_files_names_the_remedy(
    settings: Settings, sandbox: BubblewrapSandbox, has_blobs: bool
) -> None:
    folder = write_certified_run(settings.paths.home / "runs", sha256_hex(CODE))
    RunFolder(folder).ledger_path.unlink()
    if not has_blobs:
        shutil.rmtree(folder / "blobs")
    with pytest.raises(UsageError) as caught:
        [claim async for claim in verify(folder, settings=settings, sandbox=sandbox)]
    assert caught.value.remedy == "name the project: --project PATH"


async def test_a_replay_needs_the_programs_of_the_type_checkers_too(
    settings: Settings, sandbox: BubblewrapSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_certified_run(tmp_path / "copied", tools=(("pyright",),))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="node"):
        _ = [claim async for claim in verify(folder, settings=settings, sandbox=sandbox)]
