"""The field set: its bugs are reproducible, and runs on three of its packages make true claims."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from requirements import Require
from suture.core.settings import load_settings
from suture.judge.trials.trial_records import Spectrum, TestRun
from suture.sandbox import Requirement

pytestmark = pytest.mark.heavy

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CHEAPEST_PACKAGES = ("isodate", "schema", "simpleeval")
BUGS_PER_PACKAGE = 1
RUN_S = 20
"""The time limit of each run, which is enough to start the search on a slow machine."""


@pytest.fixture
def field_set(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module of the field set; `benchmarks/` is not a package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def module(name: str) -> ModuleType:
        return importlib.import_module(f"field_set.{name}")

    return module


def test_listed_bugs_belong_to_the_pinned_packages(field_set: Any) -> None:
    packages, bugs = field_set("packages").read_packages(), field_set("bugs").read_bugs()

    assert len(packages) >= 15
    assert all(len(package.sha256) == 64 for package in packages.values())
    assert {package.half for package in packages.values()} == {"tune", "report"}
    assert len({bug.id for bug in bugs}) == len(bugs)
    assert all(bug.version == packages[bug.package].version and bug.failing > 0 for bug in bugs)
    for name in CHEAPEST_PACKAGES:
        assert sum(bug.package == name and bug.kind == "one" for bug in bugs) >= BUGS_PER_PACKAGE


def test_listed_bugs_of_other_languages_belong_to_the_pinned_packages(
    field_set: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    packages = importlib.import_module("field_other.packages").read_packages()
    bugs_file = BENCHMARKS / "field_other" / "bugs.jsonl"

    bugs = field_set("bugs").read_bugs(bugs_file)

    assert {package.language for package in packages.values()} == {"javascript", "typescript", "go"}
    assert all(len(package.sha256) == 64 for package in packages.values())
    assert len({bug.id for bug in bugs}) == len(bugs)
    assert all(bug.version == packages[bug.package].version and bug.failing > 0 for bug in bugs)
    assert all(bug.mutations[0].file in packages[bug.package].code for bug in bugs)


def test_two_mutants_are_joined_unless_they_change_the_same_lines(field_set: Any) -> None:
    combined = field_set("bugs").combined
    assert combined("a\nb\nc\n", ["A\nb\nc\n", "a\nb\nC\n"]) == "A\nb\nC\n"
    assert combined("a\nb\nc\n", ["a\nB\nc\n", "a\nX\nc\n"]) is None
    assert combined("a\nb\n", ["a\nb\nmore\n"]) == "a\nb\nmore\n"


def test_the_rank_of_the_right_edit_is_measured(field_set: Any) -> None:
    ranks, bugs, packages = (field_set(name) for name in ("ranks", "bugs", "packages"))
    text = "def f(a):\n    b = a - 1\n    return b << 2\n"
    test = TestRun(id="t", outcome="failed", seconds=0.0, lines={"m.py": frozenset({1, 2, 3})})
    mutations = tuple(
        bugs.Mutation(file="m.py", operator=operator, occurrence=0, line=line)
        for operator, line in (("core/Add_LShift", 3), ("core/Unknown", 2))
    )
    bug = bugs.Bug(id="x-two-1", package="x", version="1", kind="two", failing=1, mutations=mutations)
    package = packages.Package(name="x", version="1", sha256="", half="tune", code=("m.py",))
    localised_bug = ranks.LocalisedBug(
        texts={"m.py": text},
        wanted=(("m.py", text.replace("<<", "+")), ("m.py", text.replace("a - 1", "nobody(here)"))),
        spectrum=Spectrum(tests=(test,)),
        seconds=1.0,
    )
    rank = ranks.rank_bug(bug, package, localised_bug)
    assert rank.ranks[0] is not None
    assert 1 <= rank.ranks[0] <= 10
    assert rank.ranks[1] is None
    assert rank.labels[0].startswith("line 3: << becomes +")

    sums = ranks.sums_of([rank])["tune, two"]
    assert (sums["edits"], sums["found"], sums["mrr"]) == (2, 1, round(1 / rank.ranks[0] / 2, 4))


def test_bugs_are_drawn_in_a_fixed_order_from_all_operators(field_set: Any) -> None:
    mutation = field_set("bugs").Mutation
    frequent_mutations = [mutation(file="a.py", operator=f"core/Many_{n}", occurrence=n) for n in range(50)]
    rare_mutations = [mutation(file="a.py", operator="core/Few", occurrence=n) for n in range(2)]

    order = field_set("drawing").in_drawn_order([*frequent_mutations, *rare_mutations], 15)

    assert order == field_set("drawing").in_drawn_order([*frequent_mutations, *rare_mutations], 15)
    assert sorted(order, key=repr) == sorted([*frequent_mutations, *rare_mutations], key=repr)
    assert set(rare_mutations) < set(order[:4])


@pytest.mark.timeout(900)  # whole runs of whole suites: slow where the machine is busy with other work
@pytest.mark.parametrize("package", CHEAPEST_PACKAGES)
def test_runs_on_foreign_packages_claim_only_what_is_true(
    package: str, tmp_path: Path, sandbox_requirement: Requirement, require: Require
) -> None:
    require("bubblewrap", sandbox_requirement.ok, sandbox_requirement.detail)
    cache = load_settings(Path()).settings.paths.cache / "field"
    script = [sys.executable, str(BENCHMARKS / "field.py"), "--cache", str(cache), "--package", package]
    fetch = subprocess.run([*script, "--fetch", "--offline"], capture_output=True, text=True, check=False)
    require("field-set", fetch.returncode == 0, f"{fetch.stderr} (benchmarks/field.py --fetch)")
    options = [
        "--offline",
        "--kind",
        "one",
        "--first",
        str(BUGS_PER_PACKAGE),
        "--seconds",
        str(RUN_S),
        "--json",
    ]
    process = subprocess.run(
        [*script, *options, "--rows", str(tmp_path / "rows")], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr

    rows = json.loads(process.stdout)["rows"]
    assert len(rows) == BUGS_PER_PACKAGE
    for row in rows:
        # The number of healed bugs depends on the clock, but every claim must be true.
        assert row["exit_code"] in (0, 1, 4), row
        assert row["suite"] or not row["claimed"], row
        assert not row["cause"], row
