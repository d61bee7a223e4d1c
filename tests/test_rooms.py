"""Who may know whom inside a large room: its parts, walked over every import."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

import suture
from suture.sandbox.zygote.bundle import PACKAGES, PARTS
from test_layers import uses

SOURCE = Path(suture.__file__).parent

# Room -> its parts, from the ground up. Each knows lower lines only, so no two of one line know one another.
ORDERS = {
    "sandbox": (
        ("contract",),
        ("mounts", "runs", "seccomp", "working_copy"),
        ("zygote",),
        ("bubblewrap", "container", "e2b", "unsafe"),
        ("conformance", "vetting"),
        ("backends", "pool"),
        ("doctor",),
        ("__init__",),
    ),
    "models": (
        ("hearing", "seam"),
        ("structured", "tokens"),
        ("recording", "scripted", "vendors"),
        ("weights",),
        ("embedded",),
        ("choosing",),
        ("__init__",),
    ),
    "memory": (
        ("embedding", "items", "signature"),
        ("clues", "rent"),
        ("remembering", "storing"),
        ("recall",),
        ("exchange", "of_runs"),
        ("__init__",),
    ),
    "store": (
        ("column_types", "faults", "run_errors", "scrub"),
        ("tables",),
        ("migrating",),
        ("migrations",),
        ("database",),
        ("remembered",),
        ("searching",),
        ("looking_back", "projecting"),
        ("checking", "checkpoints", "recording", "shared_runs"),
        ("fetching", "shared_jobs"),
        ("sharing",),
        ("__init__",),
    ),
    "checks": (
        ("programs",),
        ("command", "sources"),
        ("projects", "split", "tracing"),
        ("calls",),
        ("suite",),
        ("refused_files",),
        ("verdicts",),
        ("differential", "triage", "trust"),
        ("__init__",),
    ),
    "repair": (
        ("failing_project", "inside", "limits"),
        ("editing", "syntax"),
        ("gaming", "operators", "trials"),
        ("mutants",),
        ("ordering",),
        ("answering", "rivals", "search_result"),
        ("ending",),
        ("searching",),
        ("scoring",),
        ("ranking", "recovering"),
        ("other_languages",),
        ("__init__",),
    ),
    "roles": (
        ("prompting", "replies"),
        ("tools",),
        ("coding",),
        ("advisers", "testers"),
        ("__init__",),
    ),
    "proof": (
        ("certificate", "confidence"),
        ("sealing",),
        ("measures", "minimisation"),
        ("quality",),
        ("verifying",),
        ("delivery", "undo"),
        ("__init__",),
    ),
    "loop": (
        ("recipes", "review"),
        ("policy",),
        ("state",),
        ("vetting",),
        ("run_spec",),
        ("context",),
        ("recalling",),
        ("calls", "evaluation", "prompting", "proposing"),
        ("agents", "helpers", "open_run"),
        ("nodes",),
        ("graph",),
        ("resuming",),
        ("run",),
        ("__init__",),
    ),
    "jobs": (
        ("archives", "job"),
        ("journal", "known", "projects", "sweeping"),
        ("process", "work"),
        ("alone", "child", "pool"),
        ("ray_worker",),
        ("ray_cluster",),
        ("ray_pool",),
        ("__init__",),
    ),
    "pipeline": (
        ("edits", "markdown", "rest", "surroundings"),
        ("commits",),
        ("gates",),
        ("report",),
        ("hosts", "junit", "reproducing", "sarif", "telling"),
        ("github", "gitlab", "healing"),
        ("delivering",),
        ("__init__",),
    ),
    "evals": (
        ("problem", "swe"),
        ("suites", "grading"),
        ("datasets", "rows"),
        ("leaks", "measures", "replies"),
        ("running",),
        ("gate", "reports", "tracking"),
        ("__init__",),
    ),
}


def parts_of(room: str) -> Iterator[tuple[Path, str]]:
    """Every module of a room, and which part of it that is."""
    for path in sorted((SOURCE / room).rglob("*.py")):
        if "own" not in path.parts:  # tasks of the suite, which are nobody's code
            yield path, path.relative_to(SOURCE / room).parts[0].removesuffix(".py")


@pytest.mark.parametrize("room", ORDERS)
def test_every_part_is_in_the_order(room: str) -> None:
    assert {part for _, part in parts_of(room)} == {part for line in ORDERS[room] for part in line}


@pytest.mark.parametrize("room", ORDERS)
def test_parts_of_a_room_know_each_other_downwards_only(room: str) -> None:
    rank = {part: rank for rank, line in enumerate(ORDERS[room]) for part in line}
    found = []
    for path, part in parts_of(room):
        for line, name in uses(ast.parse(path.read_text("utf-8")), path.relative_to(SOURCE).as_posix()):
            package, _, rest = name.partition(f"suture.{room}.")
            known = rest.partition(".")[0]
            if not package and known != part and rank.get(known, -1) >= rank[part]:
                found.append(f"{path.relative_to(SOURCE)}:{line}: {part} may not know {known}")
    assert found == []


def test_what_is_sent_behind_the_wall_brings_all_that_it_imports() -> None:
    for part in PARTS:
        parents = {part.rsplit(".", up)[0] for up in range(1, part.count(".") + 1)}
        assert parents <= set(PACKAGES), part
        source = resources.files(part.rpartition(".")[0]).joinpath(f"{part.rpartition('.')[2]}.py")
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("suture"):
                assert node.module in (*PARTS, *PACKAGES), part
