"""Law 1 over a real run: nothing of the hidden checks stands in what a model was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator

from suture.evals.problem import Problem, task_of
from suture.ledger import RunFolder

__all__ = ["leaked_lines"]

LEAST_LINE = 12
"""Characters of a line that says something; shorter ones stand in any program."""


def leaked_lines(problem: Problem, folder: RunFolder) -> tuple[str, ...]:
    """Lines of the hidden checks that stand in a prompt of a run, and that nobody had shown or written there.

    A model that knows the set by heart may write a hidden check itself; shown to it again with its own code
    that is no leak.

    Args:
        problem: The task.
        folder: The run's folder, with every prompt and reply.
    """
    secret = set(_secret_lines(problem))
    if not secret:
        return ()
    asked: list[str] = []
    said: list[str] = []
    for path in sorted(folder.replies_path.glob("*.json")):
        entry = json.loads(path.read_bytes())
        asked += (message["content"] for message in entry["messages"])
        said.append(entry.get("reply", {}).get("text", ""))
    prompts, replies = "\n".join(asked), "\n".join(said)
    return tuple(sorted(line for line in secret if line in prompts and line not in replies))


def _secret_lines(problem: Problem) -> Iterator[str]:
    visible = [check.source for check in task_of(problem).checks]
    shown = "\n".join((problem.statement, problem.visible, *visible, *problem.given_files.values()))
    for line in map(str.strip, problem.hidden.splitlines()):
        says_something = len(line) >= LEAST_LINE and not line.startswith(("def ", "import ", "from "))
        if says_something and line not in shown:
            yield line
