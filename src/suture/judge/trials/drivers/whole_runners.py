"""Jobs for Jest, Vitest, Mocha and tape: the project's own runner stays loaded and runs a few files.

The runner is loaded by an *engine*, a program next to this file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from suture.core.records import Language
from suture.judge.trials.drivers.node import uses_es_modules
from suture.judge.trials.trial_records import Proposal
from suture.mutation import apply_edits

COMMON = ("node_trials.cjs", "runner_worker.cjs", "node_isolation.cjs", "node_coverage.cjs")
JEST = (*COMMON, "jest_engine.cjs")
VITEST = (*COMMON, "vitest_engine.cjs", "vitest_setup.mjs")
MOCHA = (*COMMON, "node_hooks.mjs", "mocha_engine.cjs")
TAPE = (*COMMON, "node_hooks.mjs", "tape_engine.cjs")
STATUS_ONLY = ("mocha", "tape")
"""Runners whose command is judged by its exit status. Which of their tests pass only orders candidates."""
SHELL_SYNTAX = re.compile(r"[&|;<>$`()*?{}~#\\\n]")
"""Characters that make a shell do more with a line than split it into words."""
SHELL_SYNTAX_WITHOUT_GLOBS = re.compile(r"[&|;<>$`()~#\\\n]")
"""Matches shell syntax that cannot be parsed here, for runners that expand file patterns themselves."""
GLOB = re.compile(r"(\*\*/|\*\*|\*|\?)")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*")
LAUNCHERS = ("npx", "cross-env", "env")
"""Programs that only start the program after them, with other variables or from the packages."""
VARIABLES: Mapping[str, Mapping[str, str]] = {
    "jest": {"NODE_ENV": "test"},
    "vitest": {"NODE_ENV": "test", "TEST": "true", "VITEST": "true"},
    "mocha": {},
    "tape": {},
}
"""Environment variables that the program of a runner sets before it loads the runner."""
OPTIONS_WITH_VALUE = (
    "--config", "-c", "--env", "--environment", "--rootDir", "--dir", "--mode", "--project", "--preset",
)  # fmt: skip
"""Options that are passed on, and whose value may be the next word."""
REPLACED_OPTIONS = (
    "--coverage", "--runInBand", "-i", "--silent", "--verbose", "--ci", "--bail", "-b", "--watchAll",
    "--watch", "--json", "--run", "--isolate", "--maxWorkers", "-w", "--reporters", "--reporter", "--pool",
    "--outputFile", "--passWithNoTests", "--runTestsByPath", "--detectOpenHandles", "--forceExit",
)  # fmt: skip
"""Options that are dropped or replaced by our own."""
REFUSED_OPTIONS = (
    "-t", "--testNamePattern", "--shard", "--onlyChanged", "-o", "--changed", "--changedSince", "--root",
    "-r", "--browser", "--typecheck", "--testPathIgnorePatterns", "--exclude", "--findRelatedTests",
)  # fmt: skip
"""Options that select tests in a way that only the runner understands."""
MOCHA_REFUSED_OPTIONS = (
    "--watch", "-w", "--parallel", "-p", "--loader", "--import", "--inspect", "--inspect-brk",
)  # fmt: skip
"""Options of Mocha that start processes of their own, or need one."""


@dataclass(frozen=True, kw_only=True)
class RunnerStart:
    """How a shell line starts a runner.

    Attributes:
        arguments: The arguments that are passed on to the runner.
    """

    variables: Mapping[str, str]
    node_flags: tuple[str, ...]
    arguments: tuple[str, ...]


def parse_start(lines: Sequence[str], runner: str) -> RunnerStart | None:
    """Return how a command starts a runner; `None` if it does more than that, or selects tests itself."""
    syntax = SHELL_SYNTAX_WITHOUT_GLOBS if runner in STATUS_ONLY else SHELL_SYNTAX
    if len(lines) != 1 or syntax.search(lines[0]):
        return None
    try:
        words = shlex.split(lines[0])
    except ValueError:
        return None
    variables: dict[str, str] = dict(VARIABLES[runner])
    flags: list[str] = []
    while words and _program_name(words[0]) != runner:
        word = words.pop(0)
        if ASSIGNMENT.fullmatch(word):
            name, _, value = word.partition("=")
            variables[name] = value
        elif word.startswith("--") and flags:
            flags.append(word)
        elif PurePosixPath(word).name == "node":
            # This flag also marks that the line starts Node itself: only then do flags before the runner count.
            flags.append("--no-warnings")
        elif word not in LAUNCHERS:
            return None
    arguments = _runner_arguments(runner, words[1:]) if words else None
    if arguments is None:
        return None
    return RunnerStart(variables=variables, node_flags=tuple(flags), arguments=tuple(arguments))


def _program_name(word: str) -> str:
    """Return the name of a program: `jest` for `node_modules/jest/bin/jest.js`."""
    return re.sub(r"\.m?js$", "", PurePosixPath(word).name)


def _runner_arguments(runner: str, arguments: Sequence[str]) -> Sequence[str] | None:
    """Return the arguments that are passed on to the runner; `None` if they are not understood."""
    if runner == "mocha":
        names = {word.partition("=")[0] for word in arguments}
        return None if names & {*MOCHA_REFUSED_OPTIONS} else arguments
    if runner == "tape":  # its options change what is loaded, or how
        return None if any(word.startswith("-") for word in arguments) else arguments
    return _options_to_pass(arguments)


def _options_to_pass(arguments: Sequence[str]) -> list[str] | None:
    """Return the options that are passed on to Jest or Vitest; `None` if one of them is refused.

    Names of files and folders are omitted, because each run names the files that it needs.
    """
    options: list[str] = []
    words = list(arguments)
    while words:
        word = words.pop(0)
        name = word.partition("=")[0].partition(".")[0]
        if name in REFUSED_OPTIONS:
            return None
        if not word.startswith("-") or name in REPLACED_OPTIONS:
            continue
        options.append(word)
        if word in OPTIONS_WITH_VALUE and words:
            options.append(words.pop(0))
    return options


def build_argv(python: str, lines: Sequence[str], driver_folder: str) -> tuple[str, ...]:
    """Return the command line of the driver; Node's options go to the process that loads the runner."""
    return ("node", f"{driver_folder}/node_trials.cjs")


def build_job(proposal: Proposal, text: str, language: Language) -> dict[str, Any]:
    """Return the job of a candidate: one file with its new source."""
    return {"path": proposal.path, "text": apply_edits(text, proposal.edits)}


def build_common(
    runner: str, files: Mapping[str, bytes], tests: Sequence[str], lines: Sequence[str]
) -> dict[str, Any]:
    """Return what all jobs share."""
    start = parse_start(lines, runner)
    assert start is not None, "a driver is chosen only for lines that it understands"
    common: dict[str, Any] = {
        "engine": f"{runner}_engine",
        "covering_files": {},
        # The other runners load all modules themselves.
        "uses_import": runner in STATUS_ONLY and uses_es_modules(files),
        "variables": dict(start.variables),
        "node_flags": start.node_flags,
        "arguments": start.arguments,
    }
    if runner == "tape":
        common["test_files"] = matching_files(start.arguments, files)
    return common


def find_unreported(lines: Sequence[str]) -> str:
    """Return which of the `STATUS_ONLY` runners a command starts; empty if none of them."""
    return next((name for name in STATUS_ONLY if parse_start(lines, name) is not None), "")


def matching_files(patterns: Sequence[str], files: Iterable[str]) -> list[str]:
    """Return the files that patterns name.

    Args:
        patterns: Patterns as in a command: `*` stands for any part of a name, `**` for any folders.
    """
    wildcards = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    expressions = [
        "".join(wildcards.get(part, re.escape(part)) for part in GLOB.split(pattern.removeprefix("./")))
        for pattern in patterns
    ]
    return sorted(path for path in files if any(re.fullmatch(expression, path) for expression in expressions))
