"""Heal real bug-fix commits with a strong model, through Suture and through other agents, on the same server.

    SUTURE_DATA=... python benchmarks/strong_model.py --server http://127.0.0.1:8377/v1 --arm suture
    SUTURE_DATA=... python benchmarks/strong_model.py --arm mini --programs ~/agents --case bottle-7a53
    python benchmarks/strong_model.py --print

Each case is laid out as a git repository with one commit and its environment. An arm gets the test command and
nothing else; a proxy counts its calls and tokens. A repair is correct if the project's own suite passes with the
arm's changes and the tests of the fixing commit. `mini` is mini-swe-agent and `aider` is aider; install each into
its own environment, PROGRAMS/mini and PROGRAMS/aider. They run with your rights, outside any sandbox.

The answers may come from a hosted model, or be written by hand behind any server of OpenAI's protocol. Whoever
writes them must see only the prompts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path

from agent_programs import agent_variables, aider_command, mini_command, run_agent
from honesty_set.honest_changes import SOURCES
from honesty_set.proposals import Proposal
from model_proxy import counting_proxy
from row_files import append_row, read_rows
from script_exit import run_script

from suture.core.ledger import read_ledger, select_events
from suture.core.ledger.kinds import AgentStepped
from suture.project.workspace import DEFAULT_PROTECTED, is_protected

ARMS = ("suture", "suture_agent", "mini", "aider")
MODEL = "openai:strong"
TASK = (
    "Tests of this project fail. `{command}` runs them, with the environment in `.venv`. Find the fault in the "
    "code and correct it, so that all tests pass. Do not change the tests."
)
ARM_TIMEOUT_S = 3600
MAX_OUTPUT_CHARS = 4000


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one arm on one case.

    Attributes:
        first_edit_right: Whether the suite passes after the arm's first change of the code; `None` if it made
            none.
        right: Whether the suite passes in the end.
        diff: The arm's change of the code, for reading it against the reference.
        output: The end of what the arm printed.
    """

    case: str
    arm: str
    calls: int
    prompt_tokens: int
    cached_tokens: int
    reply_tokens: int
    estimated: int
    first_edit_right: bool | None
    right: bool
    seconds: float
    exit_code: int | None
    diff: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Arm:
    """How a program is started on a case.

    Attributes:
        command: Returns the command line for the task, the test command and the base URL.
        variables: Returns the environment variables for the base URL.
        edits_in_place: Whether the program changes the project's files while it works.
    """

    command: Callable[[Path, str, str], list[str]]
    variables: Callable[[str], Mapping[str, str]] = lambda url: {}
    edits_in_place: bool = True


def create_arms(programs: Path) -> dict[str, Arm]:
    """Return the arms by name; `programs` is the folder of the other agents' environments."""

    def heal(recipe: str) -> Callable[[Path, str, str], list[str]]:
        def command(root: Path, test: str, url: str) -> list[str]:
            options = [
                "--test",
                test,
                "--model",
                MODEL,
                "--recipe",
                recipe,
                "--apply",
                "--json",
                "--seconds",
                "1800",
            ]
            options += ["--set", f"model.base_url={url}", "--set", f"paths.home={root.parent / 'state'}"]
            return [sys.executable, "-m", "suture.interfaces.cli", "heal", str(root), *options]

        return command

    def mini(_root: Path, test: str, _url: str) -> list[str]:
        return mini_command(programs, "strong", TASK.format(command=test))

    def aider(_root: Path, test: str, _url: str) -> list[str]:
        options = ["--edit-format", "diff", "--auto-test", "--test-cmd", test]
        return aider_command(programs, "strong", TASK.format(command=test), options)

    return {
        "suture": Arm(command=heal("adaptive"), edits_in_place=False),
        "suture_agent": Arm(command=heal("agent"), edits_in_place=False),
        "mini": Arm(command=mini, variables=agent_variables),
        "aider": Arm(command=aider, variables=agent_variables),
    }


def main() -> int:
    """Run arms on cases, or print the rows so far."""
    wanted = _parse_arguments()
    if not wanted.print_only:
        arms = create_arms(wanted.programs)
        done = {(row.arm, row.case) for row in read_rows(wanted.rows, Row)}
        chosen = set(wanted.case or ())
        for proposal in SOURCES["realfixes"](lambda names: [n for n in names if n in chosen or not chosen]):
            for name in wanted.arm or ["suture"]:
                if (name, proposal.project) in done:
                    continue
                row = run_case(proposal, name, arms[name], wanted.server)
                append_row(wanted.rows, row)
                print(f"{row.case} {row.arm}: right={row.right} calls={row.calls}", flush=True)
    print_rows(read_rows(wanted.rows, Row))
    return 0


def run_case(proposal: Proposal, name: str, arm: Arm, server: str) -> Row:
    """Let an arm heal a case in a new folder, and grade the change of the code."""
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        root = Path(folder) / "project"
        proposal.create(root)
        _commit(root)
        first_change: dict[str, bytes] = {}

        def keep_first_change() -> None:
            if not first_change:
                first_change.update(_changed_code(root, proposal))

        started_s = time.monotonic()
        with counting_proxy(server, keep_first_change if arm.edits_in_place else None) as (url, counts):
            exit_code = run_agent(
                arm.command(root, proposal.command, url),
                root,
                home=root.parent / "home",
                output=root.parent / "output",
                variables=arm.variables(url),
                first_on_path=root / ".venv" / "bin",
                timeout_s=ARM_TIMEOUT_S,
            )
        seconds = time.monotonic() - started_s
        change = _changed_code(root, proposal)
        first_edit_right = _first_patch_passes(root.parent / "state")
        right = bool(change) and replace(proposal, change=change).passes_plainly(root)
        if arm.edits_in_place and change:
            is_same = first_change in ({}, change)
            first_edit_right = (
                right if is_same else replace(proposal, change=first_change).passes_plainly(root)
            )
        return Row(
            case=proposal.project,
            arm=name,
            calls=counts.calls,
            prompt_tokens=counts.prompt_tokens,
            cached_tokens=counts.cached_tokens,
            reply_tokens=counts.reply_tokens,
            estimated=counts.estimated,
            first_edit_right=first_edit_right,
            right=right,
            seconds=round(seconds, 1),
            exit_code=exit_code,
            diff=_render_diff(proposal, change),
            output=(root.parent / "output").read_text("utf-8", "replace")[-MAX_OUTPUT_CHARS:],
        )


def _commit(root: Path) -> None:
    """Make the folder a git repository with one commit, without its environment."""
    (root / ".git" / "info").mkdir(parents=True, exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text(".venv\nnode_modules\n__pycache__\n*.egg-info\n")
    author = ["-c", "user.name=Case", "-c", "user.email=case@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--no-verify", "-m", "The project"]):
        subprocess.run(["git", *author, *command], cwd=root, check=True, capture_output=True)


def _changed_code(root: Path, proposal: Proposal) -> dict[str, bytes]:
    """Return the files that an arm changed or added; tests, links and files that git ignores are left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    changed: dict[str, bytes] = {}
    for path in listed.stdout.decode().split("\0"):
        file = root / path
        if not path or is_protected(path, DEFAULT_PROTECTED) or file.is_symlink() or not file.is_file():
            continue
        given = proposal.files.get(path)
        content = file.read_bytes()
        if content != (given.encode() if isinstance(given, str) else given):
            changed[path] = content
    return changed


def _render_diff(proposal: Proposal, change: Mapping[str, bytes]) -> str:
    parts: list[str] = []
    for path, content in sorted(change.items()):
        given = proposal.files.get(path, b"")
        before = (given if isinstance(given, str) else given.decode("utf-8", "replace")).splitlines(True)
        after = content.decode("utf-8", "replace").splitlines(True)
        parts += unified_diff(before, after, f"a/{path}", f"b/{path}")
    return "".join(parts)


def _first_patch_passes(state: Path) -> bool | None:
    """Return whether the first patch of a model passed the deciding tests; `None` if there is no run or no patch."""
    for ledger in sorted(state.rglob("ledger.jsonl")):
        for _, step in select_events(read_ledger(ledger).events, AgentStepped):
            if step.tested:
                return step.failed == 0
    return None


def print_rows(rows: Sequence[Row]) -> None:
    """Print a table by arm, and one line for each case that an arm did not heal."""
    for arm in dict.fromkeys(row.arm for row in rows):
        own = [row for row in rows if row.arm == arm]
        tokens = [row.prompt_tokens + row.reply_tokens for row in own]
        first = sum(row.first_edit_right is True for row in own)
        print(
            f"{arm}: {sum(row.right for row in own)} of {len(own)} right, first edit right in {first}; "
            f"calls {sum(row.calls for row in own)}, median {statistics.median(row.calls for row in own):g}; "
            f"tokens {sum(tokens):,}, median {statistics.median(tokens):,.0f} "
            f"(cached {sum(row.cached_tokens for row in own):,}); "
            f"median seconds {statistics.median(row.seconds for row in own):.0f}"
        )
        for row in own:
            if not row.right:
                print(f"  not healed: {row.case} (calls {row.calls}, exit code {row.exit_code})")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--server", default="http://127.0.0.1:8377/v1", help="the base URL of the chat server"
    )
    parser.add_argument("--arm", action="append", choices=ARMS, help="may be repeated; default: suture")
    parser.add_argument("--case", action="append", help="only this case of the set; may be repeated")
    parser.add_argument(
        "--programs", type=Path, default=Path(), help="folder of the other agents' environments"
    )
    parser.add_argument("--rows", type=Path, default=Path("strong_model.jsonl"), help="file of the results")
    parser.add_argument(
        "--print", dest="print_only", action="store_true", help="only print the results so far"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run_script(main))
