"""Compare the speed of this checkout with that of another commit, in turn on one machine.

    python benchmarks/ratios.py [--base REF] [--rounds 5] [--most 1.25]

Each round measures both, in alternating order: a heal of `examples/broken` and its search, `judge --quick` with a
recorded base, a sandboxed check as a share of a bare interpreter, and the start of `serve`. It prints the median of
the rounds' ratios (this checkout to the base, below 1 is faster) with the smallest and the largest one, and ends
with 1 if a median is above `--most`. Other work on the machine hardly changes the CPU seconds, and all else a lot; CPU
seconds need a control group that this process may create. The base is the last release, or where this branch left
`main`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from judge_speed import change_function, prepare_generated
from run_program import run_program
from script_exit import run_script
from search_speed import PYTEST, copy_example, read_search
from suite_sizes import CpuMeter

from suture.errors import SutureError, UsageError

ROOT = Path(__file__).parents[1]
TESTS = 1000
CLI = (sys.executable, "-m", "suture.interfaces.cli")
CHANGES = 400
OUT_OF_REACH = """from cart import cart_total


def test_ten_of_a_thing_are_one_percent_cheaper():
    assert cart_total([("mug", 1200, 30)]) == 35640
    assert cart_total([("mug", 1000, 50), ("plate", 900, 2)]) == 51300
"""
"""No change of the search makes it pass, so that it tries `CHANGES` changes whatever ends a successful search."""
CHECK = "import asyncio, sandbox; print(asyncio.run(sandbox.measure_check(40))['ratio'])"
SERVE = """import pathlib, serve, sys
process, _, seconds = serve.start(pathlib.Path(sys.argv[1]))
serve.stop(process)
print(seconds)
"""


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A version of Suture.

    Attributes:
        source: Its folder `src`.
        folder: What its runs write.
    """

    source: Path
    folder: Path

    def get_variables(self) -> dict[str, str]:
        """Return the environment variables with which this version runs, and its benchmarks, which know its names."""
        return {
            "PYTHONPATH": f"{self.source}:{self.source.parent / 'benchmarks'}",
            "PYTHONDONTWRITEBYTECODE": "",  # a version without bytecode would compile itself at each start
            "SUTURE_HOME": str(self.folder / "home"),
            "SUTURE_PATHS_CACHE": str(self.folder / "cache"),
            "SUTURE_SANDBOX_PYTHON": os.environ.get("SUTURE_SANDBOX_PYTHON", sys.executable),
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The ratios of one figure, new to old: the median, the smallest and the largest one of all rounds.

    Attributes:
        old: Median of the old figure.
        is_worse: Whether the median ratio is above the limit.
    """

    figure: str
    old: float
    median: float
    smallest: float
    largest: float
    is_worse: bool


def main() -> int:
    """Compare both versions, and print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", metavar="REF", help="the commit to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=float, default=1.25, help="the largest median ratio; 1.25")
    wanted = parser.parse_args()
    base = wanted.base or find_base()
    with tempfile.TemporaryDirectory(prefix="ratios-") as name, checked_out(base, Path(name)) as source:
        trees = [
            Tree(source=source, folder=Path(name) / "old"),
            Tree(source=ROOT / "src", folder=Path(name) / "new"),
        ]
        rounds = measure_rounds(trees, wanted.rounds)
    comparisons = compare(rounds, wanted.most)
    print(f"\nThis checkout to {base}, {wanted.rounds} rounds, load {os.getloadavg()[0]:.1f}\n")
    print("| figure | base | ratio | from | to | |\n|---|---:|---:|---:|---:|---|")
    for comparison in comparisons:
        ratios = f"{comparison.median:.2f} | {comparison.smallest:.2f} | {comparison.largest:.2f}"
        end = "worse" if comparison.is_worse else ""
        print(f"| {comparison.figure} | {comparison.old:.3g} | {ratios} | {end} |")
    return int(any(comparison.is_worse for comparison in comparisons))


def find_base() -> str:
    """Return the last release, or else the commit where this branch left `main`.

    Raises:
        UsageError: There is neither.
    """
    commands = (
        ["describe", "--tags", "--abbrev=0", "--match", "v*.*"],
        ["merge-base", "HEAD", "origin/main"],
        ["merge-base", "HEAD", "main"],
    )
    head = run_program(["git", "rev-parse", "HEAD"], ROOT).strip()
    for command in commands:
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() != head:
            return done.stdout.strip()
    raise UsageError(
        "there is no release and no branch to compare with", remedy="name a commit: --base HEAD~10"
    )


@contextmanager
def checked_out(base: str, folder: Path) -> Iterator[Path]:
    """Check a commit out beside this checkout, and yield its folder `src`."""
    run_program(["git", "worktree", "add", "--detach", str(folder / "base"), base], ROOT)
    try:
        yield folder / "base" / "src"
    finally:
        run_program(["git", "worktree", "remove", "--force", str(folder / "base")], ROOT)


def measure_rounds(trees: Sequence[Tree], rounds: int) -> list[tuple[dict[str, float], dict[str, float]]]:
    """Return the figures of both versions in each round, the base's first."""
    results = []
    with prepare_generated(TESTS) as project, CpuMeter() as meter:
        change_function(project)
        for tree in trees:
            prepare(tree, project)
        for number in range(rounds):
            order = trees if number % 2 else trees[::-1]
            figures = {tree.source: measure_tree(tree, project, meter) for tree in order}
            old, new = (figures[tree.source] for tree in trees)
            print(f"round {number + 1}: {json.dumps([old, new])}", file=sys.stderr, flush=True)
            results.append((old, new))
    return results


def prepare(tree: Tree, project: Path) -> None:
    """Compile a version, let it test its sandbox, and record what the tests of a project do without its change.

    Raises:
        SutureError: Python loads another version.
    """
    tree.folder.mkdir()
    variables = tree.get_variables()
    show = "import suture; print(suture.__file__)"
    loaded = Path(run_program([sys.executable, "-c", show], tree.folder, variables).strip())
    if not loaded.is_relative_to(tree.source):
        raise SutureError(f"Python loads {loaded} instead of {tree.source}")
    run_program([*CLI, "judge", ".", "--test", PYTEST], project, variables)
    measure_tree(tree, project, None)


def measure_tree(tree: Tree, project: Path, meter: CpuMeter | None) -> dict[str, float]:
    """Return each figure of a version; the smaller, the better.

    Args:
        project: A committed project with a change.
        meter: Reads CPU seconds; without a control group there are none.
    """
    variables = tree.get_variables()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=tree.folder) as name:
        root, home = Path(name) / "project", Path(name) / "home"
        copy_example(root)
        heal = [*CLI, "heal", ".", "--test", PYTEST, "--no-model"]
        figures |= time_command("heal", heal, root, variables, meter)
        (root / "test_discount.py").write_text(OUT_OF_REACH)
        figures["search, ms a change"] = measure_search(heal, root, {**variables, "SUTURE_HOME": str(home)})
        judge = [*CLI, "judge", ".", "--test", PYTEST, "--quick"]
        figures |= time_command("judge --quick", judge, project, variables, meter)
        script = [sys.executable, "-c"]
        figures["check, of a bare interpreter"] = float(run_program([*script, CHECK], root, variables))
        figures["serve ready, s"] = float(run_program([*script, SERVE, name], root, variables))
    return figures


def time_command(
    name: str, command: Sequence[str], folder: Path, variables: Mapping[str, str], meter: CpuMeter | None
) -> dict[str, float]:
    """Return the wall-clock seconds of a command, and its CPU seconds with those of its sandboxes, if known."""
    started_s, cpu_s = time.perf_counter(), meter.read_s() if meter else 0.0
    run_program(command, folder, variables)
    figures = {f"{name}, s": time.perf_counter() - started_s}
    if meter and (used_s := meter.read_s() - cpu_s):
        figures[f"{name}, CPU s"] = used_s
    return figures


def measure_search(heal: Sequence[str], root: Path, variables: Mapping[str, str]) -> float:
    """Return the milliseconds of the search for one change, in a project that it cannot heal."""
    done = subprocess.run(
        [*heal, "--set", f"repair.candidates={CHANGES}"],
        cwd=root,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    candidates, search_s = read_search(Path(variables["SUTURE_HOME"]), done.stderr)
    return 1000 * search_s / max(candidates, 1)


def compare(
    rounds: Sequence[tuple[Mapping[str, float], Mapping[str, float]]], most: float
) -> list[Comparison]:
    """Return how each figure changed.

    Args:
        rounds: The figures of each round, first the old and then the new ones; the smaller, the better.
        most: The largest median ratio of a figure that is not worse.
    """
    comparisons = []
    for figure in rounds[0][0]:
        ratios = [new[figure] / old[figure] for old, new in rounds]
        comparisons.append(
            Comparison(
                figure=figure,
                old=statistics.median(old[figure] for old, _ in rounds),
                median=statistics.median(ratios),
                smallest=min(ratios),
                largest=max(ratios),
                is_worse=statistics.median(ratios) > most,
            )
        )
    return comparisons


if __name__ == "__main__":
    sys.exit(run_script(main))
