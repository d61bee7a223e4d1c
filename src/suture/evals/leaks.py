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
    that is no leak. What it only repeats of a prompt it has not written itself.

    Args:
        problem: The task.
        folder: The run's folder, with every prompt and reply.
    """
    secret = set(_secret_lines(problem))
    if not secret:
        return ()
    calls = []
    for path in sorted(folder.replies_path.glob("*.json")):
        entry = json.loads(path.read_bytes())
        prompt = "\n".join(message["content"] for message in entry["messages"])
        calls.append((prompt, entry.get("reply", {}).get("text", "")))
    shown = {line for line in secret if any(line in prompt for prompt, _ in calls)}
    own = {line for line in shown if any(line in said and line not in prompt for prompt, said in calls)}
    return tuple(sorted(shown - own))


def _secret_lines(problem: Problem) -> Iterator[str]:
    visible = [check.source for check in task_of(problem).checks]
    shown = "\n".join((problem.statement, problem.visible, *visible, *problem.given_files.values()))
    for line in map(str.strip, problem.hidden.splitlines()):
        says_something = len(line) >= LEAST_LINE and not line.startswith(("def ", "import ", "from "))
        if says_something and line not in shown:
            yield line
