"""Candidates on Jest, Vitest, Mocha and tape: the project's own runner stays loaded, and runs a few files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from suture.core.records import Language
from suture.judge.trials.trial_records import Proposal
from suture.mutation.edits import apply_edits
from suture.search.tree_sitter.drivers.node import holds_modules

COMMON = ("node_trials.cjs", "runner_worker.cjs", "node_kept.cjs", "node_coverage.cjs")
JEST = (*COMMON, "jest_engine.cjs")
VITEST = (*COMMON, "vitest_engine.cjs", "vitest_setup.mjs")
MOCHA, TAPE = ((*COMMON, "node_hooks.mjs", f"{name}_engine.cjs") for name in ("mocha", "tape"))
BY_STATUS = ("mocha", "tape")
"""Runners whose command is judged by its exit status: what is seen of their tests only orders candidates."""
SHELL = re.compile(r"[&|;<>$`()*?{}~#\\\n]")
COMMANDING = re.compile(r"[&|;<>$`()~#\\\n]")
"""As `SHELL`, where a pattern for files goes on to a runner that reads such itself."""
GLOB = re.compile(r"(\*\*/|\*\*|\*|\?)")
ASSIGNED = re.compile(r"[A-Za-z_]\w*=.*")
BEFORE = ("npx", "cross-env", "env")
VARIABLES: Mapping[str, Mapping[str, str]] = {
    "jest": {"NODE_ENV": "test"},
    "vitest": {"NODE_ENV": "test", "TEST": "true", "VITEST": "true"},
    "mocha": {},
    "tape": {},
}
"""What the program of a runner sets before it loads it."""
VALUED = ("--config", "-c", "--env", "--environment", "--rootDir", "--dir", "--mode", "--project", "--preset")
"""Options that go on, and whose value may be the next word."""
OURS = (
    *("--coverage", "--runInBand", "-i", "--silent", "--verbose", "--ci", "--bail", "-b", "--watchAll"),
    *("--watch", "--json", "--run", "--isolate", "--maxWorkers", "-w", "--reporters", "--reporter", "--pool"),
    *("--outputFile", "--passWithNoTests", "--runTestsByPath", "--detectOpenHandles", "--forceExit"),
)
"""Options in whose place we say our own, or none."""
REFUSED = (
    *("-t", "--testNamePattern", "--shard", "--onlyChanged", "-o", "--changed", "--changedSince", "--root"),
    *("-r", "--browser", "--typecheck", "--testPathIgnorePatterns", "--exclude", "--findRelatedTests"),
)
"""Options that choose tests in a way that is the runner's own business."""
OF_ONE_START = ("--watch", "-w", "--parallel", "-p", "--loader", "--import", "--inspect", "--inspect-brk")
"""Mocha's, that start processes of their own or need one."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """How a line starts a runner: variables, Node's options, and words that it is to be given again."""

    variables: Mapping[str, str]
    flags: tuple[str, ...]
    words: tuple[str, ...]


def started(lines: Sequence[str], runner: str) -> Started | None:
    """How a command starts a runner; `None` where it does more than that, or chooses tests by itself.

    Args:
        lines: What a shell would run.
        runner: Its program.
    """
    if len(lines) != 1 or (COMMANDING if runner in BY_STATUS else SHELL).search(lines[0]):
        return None
    try:
        waiting = shlex.split(lines[0])
    except ValueError:
        return None
    variables: dict[str, str] = dict(VARIABLES[runner])
    flags: list[str] = []
    while waiting and _program(waiting[0]) != runner:
        word = waiting.pop(0)
        if ASSIGNED.fullmatch(word):
            name, _, value = word.partition("=")
            variables[name] = value
        elif word.startswith("--") and flags:
            flags.append(word)
        elif PurePosixPath(word).name == "node":
            flags.append("--no-warnings")
        elif word not in BEFORE:
            return None
    words = _words_of(runner, waiting[1:]) if waiting else None
    return None if words is None else Started(variables=variables, flags=tuple(flags), words=words)


def _program(word: str) -> str:
    return re.sub(r"\.m?js$", "", PurePosixPath(word).name)


def _words_of(runner: str, given: Sequence[str]) -> tuple[str, ...] | None:
    """What goes on to the runner; `None` where that is not understood."""
    if runner == "mocha":
        return None if {word.partition("=")[0] for word in given} & {*OF_ONE_START} else tuple(given)
    if runner == "tape":  # its own options change what is loaded, or how
        return None if any(word.startswith("-") for word in given) else tuple(given)
    return _words(given)


def _words(given: Sequence[str]) -> tuple[str, ...] | None:
    """The options that go on; files and folders are named anew for each run."""
    kept: list[str] = []
    waiting = list(given)
    while waiting:
        word = waiting.pop(0)
        name = word.partition("=")[0]
        if name.partition(".")[0] in REFUSED:
            return None
        if not word.startswith("-") or name.partition(".")[0] in OURS:
            continue
        kept.append(word)
        if word in VALUED and waiting:
            kept.append(waiting.pop(0))
    return tuple(kept)


def argv(python: str, lines: Sequence[str], box: str) -> tuple[str, ...]:
    """Node; what the command gives it goes to the process that loads the runner.

    Args:
        python: Not used.
        lines: Not used.
        box: The folder of the driver.
    """
    return ("node", f"{box}/node_trials.cjs")


def job(proposal: Proposal, text: str, language: Language) -> dict[str, Any]:
    """A candidate: one file with another text.

    Args:
        proposal: The candidate.
        text: The file as it is.
        language: Not used.
    """
    return {"path": proposal.path, "text": apply_edits(text, proposal.edits)}


def common(
    runner: str, files: Mapping[str, bytes], tests: Sequence[str], lines: Sequence[str]
) -> dict[str, Any]:
    """What the driver is told once of a runner.

    Args:
        runner: Its program.
        files: The project.
        tests: Not used.
        lines: What a shell would run.
    """
    own = started(lines, runner)
    assert own is not None, "a driver is asked for by lines that it is able to do"
    how = {"variables": dict(own.variables), "flags": own.flags, "words": own.words}
    chosen = {"files": matching(own.words, files)} if runner == "tape" else {}
    esm = runner in BY_STATUS and holds_modules(files)  # the others load all modules by themselves
    return {"engine": f"{runner}_engine", "covering": {}, "esm": esm, **how, **chosen}


def unreported(lines: Sequence[str]) -> str:
    """The runner that a command judged by its exit status starts; empty where none of ours can stay loaded.

    Args:
        lines: What a shell would run.
    """
    return next((name for name in BY_STATUS if started(lines, name) is not None), "")


def matching(patterns: Sequence[str], files: Iterable[str]) -> list[str]:
    """The files that patterns for paths name.

    Args:
        patterns: Such as a runner reads: `*` in a name, `**` for any folders.
        files: Paths from the project's root.
    """
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = [[signs.get(p, re.escape(p)) for p in GLOB.split(w.removeprefix("./"))] for w in patterns]
    return sorted(path for path in files if any(re.fullmatch("".join(own), path) for own in parts))
