"""What the recorded result of a base depends on, and where none is kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suture.core.records import Task
from suture.core.settings import SandboxSettings
from suture.core.settings.schema import IsolationLevel
from suture.loop.judgement.base_results import find_recorded_run
from suture.project.languages import Interpreter
from suture.sandbox.contract import Capabilities

TASK = Task(
    statement="",
    kind="heal",
    files={"a.py": b"1", "test_a.py": b"2"},
    test_command=("python", "-m", "pytest"),
)


class ClaimingSandbox:
    """A sandbox that only claims what it can do."""

    name = "claiming"

    def __init__(self, level: IsolationLevel = "namespace", identity: str = "one") -> None:
        self._capabilities = Capabilities(level=level, mode="warm", identity=identity)

    async def capabilities(self) -> Capabilities:
        return self._capabilities


@pytest.fixture
def interpreter(tmp_path: Path) -> Interpreter:
    """An installation of Python with one package."""
    packages = tmp_path / "python/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "shop.py").write_text("PRICE = 1\n")
    (tmp_path / "python/bin").mkdir()
    (tmp_path / "python/bin/python3").write_text("")
    (tmp_path / "python/bin/python3").chmod(0o755)
    prefix = str(tmp_path / "python")
    return Interpreter(
        executable=f"{prefix}/bin/python3",
        prefix=prefix,
        base_prefix=prefix,
        version="3.11",
        site_packages=(str(packages),),
        origin="a test",
    )


async def find_key(
    interpreter: Interpreter,
    task: Task = TASK,
    sandbox: Any = None,
    settings: SandboxSettings = SandboxSettings(),  # noqa: B008 - it is immutable
) -> str | None:
    claiming: Any = sandbox or ClaimingSandbox()
    record = await find_recorded_run(Path("cache"), task, claiming, settings, interpreter)
    return record.key if record is not None else None


@pytest.mark.asyncio
async def test_a_result_holds_for_the_same_files_command_limits_sandbox_and_packages_alone(
    interpreter: Interpreter,
) -> None:
    key = await find_key(interpreter)
    assert key is not None
    assert await find_key(interpreter) == key
    others = [
        await find_key(interpreter, replace(TASK, files={**TASK.files, "a.py": b"3"})),
        await find_key(interpreter, replace(TASK, files={**TASK.files, "b.txt": b""})),
        await find_key(interpreter, replace(TASK, test_command=(*TASK.test_command, "-x"))),
        await find_key(interpreter, settings=SandboxSettings(test_timeout_s=7)),
        await find_key(interpreter, sandbox=ClaimingSandbox(identity="two")),
        await find_key(replace(interpreter, version="3.12")),
    ]
    package = Path(interpreter.site_packages[0]) / "shop.py"
    package.write_text("PRICE = 2\n")
    others.append(await find_key(interpreter))
    package.with_name("new.py").write_text("")
    others.append(await find_key(interpreter))
    assert len({key, *others}) == len(others) + 1


@pytest.mark.asyncio
async def test_none_is_kept_where_a_program_could_write_it_or_the_command_is_not_pytest(
    interpreter: Interpreter,
) -> None:
    assert await find_key(interpreter, sandbox=ClaimingSandbox(level="process")) is None
    assert await find_key(interpreter, replace(TASK, test_command=("make", "test"))) is None
