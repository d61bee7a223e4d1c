"""Who may know whom inside the sandbox: its folders, walked over every import."""

from __future__ import annotations

import ast
from importlib import resources
from pathlib import Path

import suture.sandbox
from suture.sandbox.zygote.bundle import PACKAGES, PARTS
from test_layers import uses

SOURCE = Path(suture.sandbox.__file__).parent

# From the ground up. Each knows lower lines only, so that no two of one line know one another.
LINES = (
    ("contract",),
    ("runs", "seccomp", "shown"),
    ("zygote",),
    ("bubblewrap", "container", "e2b", "unsafe"),
    ("conformance", "vetting"),
    ("backends", "pool"),
    ("doctor", "opening"),
    ("__init__",),
)
RANK = {room: rank for rank, line in enumerate(LINES) for room in line}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_folder_is_in_the_order() -> None:
    assert {room_of(path) for path in SOURCE.rglob("*.py")} == RANK.keys()


def test_the_folders_know_each_other_downwards_only() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        room = room_of(path)
        for line, name in uses(ast.parse(path.read_text("utf-8")), f"sandbox/{path.relative_to(SOURCE)}"):
            package, _, rest = name.partition("suture.sandbox.")
            known = rest.partition(".")[0]
            if not package and known != room and known in RANK and RANK[known] >= RANK[room]:
                found.append(f"{path.relative_to(SOURCE)}:{line}: {room} may not know {known}")
    assert found == []


def test_what_is_sent_behind_the_wall_brings_all_that_it_imports() -> None:
    for part in PARTS:
        parents = {part.rsplit(".", up)[0] for up in range(1, part.count(".") + 1)}
        assert parents <= set(PACKAGES), part
        source = resources.files(part.rpartition(".")[0]).joinpath(f"{part.rpartition('.')[2]}.py")
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("suture"):
                assert node.module in (*PARTS, *PACKAGES), part
