"""A project and a healed run of it, written without a sandbox: the records that `apply` and `undo` read."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suture.core.ledger import Ledger, RunFolder, new_run_id
from suture.core.ledger.kinds import RunFinished, RunStarted
from suture.core.records import Candidate, Reason, Result, Task
from suture.core.settings import Settings
from suture.core.settings.setting_changes import encode_settings
from suture.loop.state import SCHEMA_VERSION
from suture.project.workspace import overlay_candidate, unified_diff

BEFORE = {
    "shop/prices.py": b"def total():\n    return 1\n",
    "shop/old.py": b"OLD = 1\n",
    "notes.txt": b"mine\n",
}
CHANGE = {
    "shop/prices.py": "def total():\n    return 2\n",
    "shop/old.py": "OLD = 2\n",
    "shop/new/more.py": "MORE = 1\n",
}


@dataclass(frozen=True, kw_only=True)
class HealedProject:
    """A project's folder and the state folder with a run that healed it."""

    root: Path
    home: Path
    run_id: str

    @property
    def settings(self) -> Settings:
        """Settings with this state folder."""
        return Settings.model_validate({"paths": {"home": str(self.home)}})

    @property
    def run(self) -> RunFolder:
        """The folder of the run."""
        return RunFolder(self.home / "runs" / self.run_id)

    def read_files(self) -> dict[str, bytes]:
        """Return path -> content of all files of the project, without git's."""
        paths = [path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts]
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths}

    def reset(self, template: Path) -> None:
        """Replace the project and the state folder by those of a template (see `save`)."""
        for folder in (self.root, self.home):
            for entry in folder.iterdir():  # the folder itself stays: it may be the current one
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            shutil.copytree(template / folder.name, folder, dirs_exist_ok=True)

    def save(self, template: Path) -> Path:
        """Copy the project and the state folder for `reset`, and return the copy."""
        for folder in (self.root, self.home):
            shutil.copytree(folder, template / folder.name)
        return template


def write_healed_project(folder: Path, change: Mapping[str, str] = CHANGE) -> HealedProject:
    """Write a project into a folder, and a run that healed it by some new file contents."""
    root, home = folder / "project", folder / "home"
    for path, content in BEFORE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    run_id = add_healed_run(root, home, change)
    return HealedProject(root=root, home=home, run_id=run_id)


def add_healed_run(root: Path, home: Path, change: Mapping[str, str]) -> str:
    """Record a run that healed the project by some new file contents, and return its id."""
    settings = Settings.model_validate({"paths": {"home": str(home)}})
    run = RunFolder(home / "runs" / new_run_id())
    run.path.mkdir(parents=True)
    task = Task(statement="heal it", kind="heal", files=BEFORE, test_command=("pytest",))
    diff = unified_diff(BEFORE, overlay_candidate(BEFORE, change))
    result = Result(
        run_id=run.id,
        outcome="healed",
        reason=Reason(code="checks_pass"),
        candidate=Candidate(files=change, origin="repair"),
        diff=diff,
    )
    (run.path / "result.diff").write_text(diff)
    with Ledger(run.ledger_path) as ledger:
        started = RunStarted(
            kind="heal",
            task=run.save_record(task),
            schema_version=SCHEMA_VERSION,
            settings=run.save_json(encode_settings(settings)),
            project=str(root),
        )
        finished = RunFinished(outcome="healed", reason=result.reason, result=run.save_record(result))
        ledger.append_all([started, finished])
    return run.id
