"""Count the changes that the search tries in a second, beside how often bare processes run the failing test.

    python benchmarks/search_speed.py --rows search_speed.jsonl [--npm] [--only example] [--seconds 20]
    python benchmarks/search_speed.py --print --rows search_speed.jsonl

Every case is the cart of `examples/broken`, so that the changes are alike. The limit in Python is a fork in which the
failing test runs without pytest; in other languages it is a new process that runs it: Node, the runner, or the
compiled Go test. JavaScript and Go are measured where they are installed; `--npm` also installs Jest and Vitest. The
seconds of a search include those in which it looks for rivals after the first repair.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from judge_speed import prepare_generated
from row_files import append_row, read_rows
from run_program import run_program
from script_exit import run_script

from suture.errors import SutureError

EXAMPLE = Path(__file__).parents[1] / "examples" / "broken"
PYTEST = "python -m pytest -q"
LIMIT_S = 3.0
TESTS = 1000
SLOW_TEST = """import time

from cart import cart_total


def test_three_of_a_thing_cost_three_times_as_much():
    end_s = time.perf_counter() + {}
    while time.perf_counter() < end_s:
        pass
    assert cart_total([("mug", 1200, 3)]) == 4090
    assert cart_total([("mug", 1200, 4), ("plate", 900, 2)]) == 6600
    assert cart_total([]) == 0
"""
JAVASCRIPT = """const FREE_SHIPPING_FROM = 5000;
const SHIPPING = 490;

function cartTotal(lines) {
  if (lines.length === 0) {
    return 0;
  }
  let goods = 0;
  for (const [name, price, quantity] of lines) {
    goods += price;
  }
  if (goods < FREE_SHIPPING_FROM) {
    return goods + SHIPPING;
  }
  return goods;
}

module.exports = { cartTotal };
"""
JAVASCRIPT_TEST = """test('three of a thing cost three times as much', () => {
  same(cartTotal([['mug', 1200, 3]]), 4090);
  same(cartTotal([['mug', 1200, 4], ['plate', 900, 2]]), 6600);
  same(cartTotal([]), 0);
});
"""
REQUIRE = "const { cartTotal } = require('./cart');\n"
EXPECT = "const same = (actual, expected) => expect(actual).toBe(expected);\n"
NODE_TEST = (
    "const test = require('node:test');\nconst { strictEqual: same } = require('node:assert');\n" + REQUIRE
)
VITEST = "import { expect, test } from 'vitest';\nimport { cartTotal } from './cart';\n" + EXPECT
GO = """package cart

const freeShippingFrom = 5000
const shipping = 490

// Line is a line of the cart: what one thing costs, and how many there are.
type Line struct{ Price, Quantity int }

// Total returns what the customer pays.
func Total(lines []Line) int {
	if len(lines) == 0 {
		return 0
	}
	goods := 0
	for _, line := range lines {
		goods += line.Price
	}
	if goods < freeShippingFrom {
		return goods + shipping
	}
	return goods
}
"""
GO_TEST = """package cart

import "testing"

func same(t *testing.T, actual, expected int) {
	if actual != expected {
		t.Fatalf("got %d, expected %d", actual, expected)
	}
}

func TestThreeOfAThing(t *testing.T) {
	same(t, Total([]Line{{1200, 3}}), 4090)
	same(t, Total([]Line{{1200, 4}, {900, 2}}), 6600)
	same(t, Total(nil), 0)
}
"""
FORKS = """import os, sys, time
sys.path.insert(0, "")
from test_cart import test_three_of_a_thing_cost_three_times_as_much as test
count, end_s = 0, time.perf_counter() + {seconds}
while time.perf_counter() < end_s:
    child = os.fork()
    if child == 0:
        try:
            test()
        except AssertionError:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    count += 1
print(count / {seconds})
"""
PROCESSES = """import subprocess, time
count, start_s = 0, time.perf_counter()
while time.perf_counter() < start_s + {seconds}:
    assert subprocess.run({command}, capture_output=True).returncode == 1
    count += 1
print(count / (time.perf_counter() - start_s))
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A project in which one test fails.

    Attributes:
        write: Writes the project into an empty folder.
        test: The test command.
        limit: What runs the failing test alone; empty for a fork.
        missing: Why it cannot be measured here; empty if it can.
    """

    write: Callable[[Path], None]
    test: str = PYTEST
    limit: Sequence[str] = ()
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The search in one project.

    Attributes:
        candidates: Changes that it tried.
        search_s: Wall-clock seconds of the search.
        limit_one: Runs of the failing test in a second by one process, as the description of this script says.
        limit_two: The same by two processes at once.
        load: Processes that wanted the processor when the search began.
    """

    case: str
    candidates: int
    search_s: float
    limit_one: float
    limit_two: float
    load: float


def main() -> int:
    """Measure the cases, or print the rows so far."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=Path, default=Path("search_speed.jsonl"))
    parser.add_argument("--only", action="append", metavar="CASE", help="may be repeated")
    parser.add_argument("--seconds", type=float, default=20, help="max seconds of a search; 20")
    parser.add_argument("--npm", action="store_true", help="install Jest and Vitest for their cases")
    parser.add_argument("--print", action="store_true")
    wanted = parser.parse_args()
    for name, case in {} if wanted.print else list_cases(npm=wanted.npm).items():
        if wanted.only and name not in wanted.only:
            continue
        if case.missing:
            print(f"{name} is left out: {case.missing}", file=sys.stderr)
        else:
            append_row(wanted.rows, measure_case(name, case, wanted.seconds))
    print("| failing test | changes | seconds | a second | bare, one process | bare, two | load |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for row in read_rows(wanted.rows, Row):
        rate = row.candidates / max(row.search_s, 0.001)
        rates = " | ".join(f"{each:,.1f}" for each in (rate, row.limit_one, row.limit_two))
        print(f"| {row.case} | {row.candidates} | {row.search_s:.1f} | {rates} | {row.load} |")
    return 0


def list_cases(*, npm: bool) -> dict[str, Case]:
    """Return each case by its name."""
    node = "" if shutil.which("node") else "Node is not on PATH"
    runners = node or ("" if npm else "--npm installs it")
    go = "" if shutil.which("go") else "Go is not on PATH"
    return {
        "example": Case(write=copy_example),
        "5 ms": Case(write=partial(write_suite, test_s=0.005)),
        "50 ms": Case(write=partial(write_suite, test_s=0.05)),
        "node:test": Case(
            write=partial(write_javascript, head=NODE_TEST),
            test="node --test",
            limit=("node", "cart.test.js"),
            missing=node,
        ),
        "Jest": Case(
            write=partial(write_javascript, head=REQUIRE + EXPECT, package="jest@29"),
            test="npx jest",
            limit=("node_modules/.bin/jest",),
            missing=runners,
        ),
        "Vitest": Case(
            write=partial(write_javascript, head=VITEST, package="vitest@3"),
            test="npx vitest run",
            limit=("node_modules/.bin/vitest", "run"),
            missing=runners,
        ),
        "Go": Case(write=write_go, test="go test ./...", limit=("./cart.test",), missing=go),
    }


def copy_example(root: Path) -> None:
    """Copy `examples/broken`."""
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns("__pycache__", ".*"), dirs_exist_ok=True)


def write_suite(root: Path, *, test_s: float) -> None:
    """Write a project with so many tests that pass in no time, and one that fails after some seconds."""
    with prepare_generated(TESTS - 1) as generated:
        shutil.copytree(generated, root, ignore=shutil.ignore_patterns(".git"), dirs_exist_ok=True)
    shutil.copy(EXAMPLE / "cart.py", root)
    (root / "test_cart.py").write_text(SLOW_TEST.format(test_s))


def write_javascript(root: Path, *, head: str, package: str = "") -> None:
    """Write a project in JavaScript, and install its test runner."""
    is_module = head.startswith("import")
    code = JAVASCRIPT.replace("module.exports =", "export") if is_module else JAVASCRIPT
    (root / "package.json").write_text(
        json.dumps({"name": "cart", "type": "module" if is_module else "commonjs"})
    )
    (root / "cart.js").write_text(code)
    (root / "cart.test.js").write_text(head + JAVASCRIPT_TEST)
    if package:
        run_program(["npm", "install", "--no-audit", "--no-fund", "--save-dev", package], root)


def write_go(root: Path) -> None:
    """Write a package in Go."""
    (root / "go.mod").write_text("module example.org/cart\n\ngo 1.19\n")
    (root / "cart.go").write_text(GO)
    (root / "cart_test.go").write_text(GO_TEST)


def measure_case(name: str, case: Case, seconds: float) -> Row:
    """Measure the limit of a case and then its search."""
    with tempfile.TemporaryDirectory(prefix="search-speed-") as folder:
        root = Path(folder) / "project"
        root.mkdir()
        case.write(root)
        limits = [measure_limit(root, case, processes) for processes in (1, 2)]
        load = os.getloadavg()[0]
        candidates, search_s = heal_once(root, case.test, seconds, Path(folder) / "home")
    return Row(
        case=name,
        candidates=candidates,
        search_s=search_s,
        limit_one=round(limits[0], 1),
        limit_two=round(limits[1], 1),
        load=round(load, 1),
    )


def measure_limit(root: Path, case: Case, processes: int) -> float:
    """Return how often a second some processes can run the failing test together."""
    if name := next((word for word in case.limit if word.endswith(".test")), ""):
        run_program(["go", "test", "-c", "-o", name], root)
    script = PROCESSES if case.limit else FORKS
    command = [sys.executable, "-c", script.format(seconds=LIMIT_S, command=list(case.limit))]
    running = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    outputs = [process.communicate()[0] for process in running]
    if name:
        (root / name).unlink()
    if any(process.returncode for process in running):
        raise SutureError(f"{' '.join(case.limit) or 'a fork'} does not fail as the test should")
    return sum(map(float, outputs))


def heal_once(root: Path, test: str, seconds: float, home: Path) -> tuple[int, float]:
    """Heal a project without a model, and return the number of changes that the search tried and its seconds."""
    command = [sys.executable, "-m", "suture.interfaces.cli", "heal", ".", "--test", test, "--no-model"]
    done = subprocess.run(
        [*command, "--set", f"repair.seconds={seconds}"],
        cwd=root,
        env={"SUTURE_SANDBOX_PYTHON": sys.executable, **os.environ, "SUTURE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    return read_search(home, done.stderr)


def read_search(home: Path, errors: str) -> tuple[int, float]:
    """Return the number of changes that the search of a run tried, and its seconds.

    Args:
        home: A folder with one run.
        errors: What the run printed on stderr.

    Raises:
        SutureError: No search ended.
    """
    for ledger in home.glob("runs/*/ledger.jsonl"):
        for line in ledger.read_text("utf-8").splitlines():
            event = json.loads(line)
            if event["kind"] == "search.finished":
                return event["data"]["candidates_tried"], event["data"]["seconds"]
    raise SutureError(f"no search ended: {errors.strip()[-300:]}")


if __name__ == "__main__":
    sys.exit(run_script(main))
