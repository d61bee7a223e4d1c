"""Candidates on `node:test`: one worker thread loads the test files anew for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from suture.records import Language
from suture.repair.editing.edits import mutated
from suture.repair.trials.records import Proposal

PROGRAMS = ("node_trials.cjs", "node_worker.cjs", "node_shim.cjs", "node_coverage.cjs", "node_hooks.mjs")
LOADERS = re.compile(r"--(?:import|require|loader|experimental-loader|conditions)(?:[= ](\S+))|-r (\S+)")
TYPES = re.compile(r"(?:^|[\s/])tsx\s")
MODULE = re.compile(rb"\"type\"\s*:\s*\"module\"")


def argv(python: str, lines: Sequence[str], box: str) -> tuple[str, ...]:
    """Node with what the command has it load first.

    Args:
        python: Not used.
        lines: What starts the tests.
        box: The folder of the driver.
    """
    line_of_script = next((line for line in lines if re.search(r"(?:^|[\s/])(?:node|tsx)\s", line)), "")
    flags = [word for match in LOADERS.finditer(line_of_script) for word in match[0].split(" ")]
    if TYPES.search(line_of_script) and not flags:
        flags = ["--import", "tsx"]
    return ("node", "--enable-source-maps", *flags, f"{box}/node_trials.cjs")


def job(proposal: Proposal, text: str, language: Language) -> dict[str, Any]:
    """A candidate: one file with another text."""
    return {"path": proposal.path, "text": mutated(text, proposal.edits)}


def common(files: Mapping[str, bytes], tests: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    """Whether modules of the project have to be loaded by `import`."""
    manifests = (content for path, content in files.items() if path.endswith("package.json"))
    modules = any(path.endswith((".mjs", ".mts")) for path in files)
    return {"esm": modules or any(MODULE.search(content) for content in manifests)}
