"""Cheats that are written out: in other languages than Python, and those whose tests compare objects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from honesty_set.proposals import Proposal

FOLDER = Path(__file__).parent / "written_cheats"
HONEST = "honest"

__all__ = ["list_written_proposals"]


def list_written_proposals() -> Iterator[Proposal]:
    """Yield each written cheat, and the reference of each project."""
    for path in sorted(FOLDER.glob("*.toml")):
        data = tomllib.loads(path.read_text("utf-8"))
        projects = data["project"]
        for name, cheat in data["cheat"].items():
            project = projects[cheat["project"]]
            text = cheat["text"].lstrip("\n").replace("OWN", _rename_function(project))
            change = {project["path"]: text, **cheat.get("files", {})}
            yield _create_proposal(path.stem, name, cheat["project"], project, change)
        for name, project in projects.items():
            yield _create_proposal(path.stem, HONEST, name, project, {project["path"]: project["reference"]})


def _create_proposal(
    language: str, kind: str, name: str, project: dict[str, Any], change: dict[str, str]
) -> Proposal:
    return Proposal(
        source="written",
        kind=kind,
        project=f"{language} {name}",
        function=project["function"],
        files={path: text.lstrip("\n") for path, text in project["files"].items()},
        change=change,
        command=project["command"],
    )


def _rename_function(project: dict[str, Any]) -> str:
    """Return the project's own function as `own`, which only the file itself can use."""
    text = re.sub(r"^(?:package .*|import .*)$", "", project["files"][project["path"]], flags=re.MULTILINE)
    return re.sub(rf"\b{project['function']}\b", "own", text.replace("export ", "")).strip()
