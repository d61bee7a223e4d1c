"""Find where a failing call first goes wrong, by comparison with a partial repair on which it goes right."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from suture.core.ledger.kinds import HistorySearched
from suture.core.records import Counterexample
from suture.judge.tracing.variable_trace import RunTrace, TraceTarget, find_divergence, run_traced_code
from suture.judge.trials.trial_records import Proposal
from suture.loop.context import RunContext
from suture.loop.tuning import MAX_DIVERGENCE_CHANGES, MAX_DIVERGENCE_FACTS, MAX_HISTORY_RUN_S
from suture.mutation import apply_edits
from suture.project.python_source.parsing import parse_module
from suture.project.workspace import overlay_candidate
from suture.search import FailingProject, Hunk, compute_hunks


async def find_divergences(
    facts: Iterable[Counterexample],
    partial: Sequence[Proposal],
    texts: Mapping[str, str],
    context: RunContext,
) -> dict[str, str]:
    """Return the first variable that takes a wrong value in each failing call: check id -> a sentence.

    A call can be traced if it calls a function at the top level of a module with literals. It must return the
    expected value on one of the partial repairs, because the two runs are compared.

    Args:
        facts: The failures on the user's code, the most informative first.
        partial: Changes that made some failing test pass and broke none, the best first.
        texts: The user's code: path -> text.
    """
    divergences: dict[str, str] = {}
    traceable = [(fact, module) for fact in facts if (module := _find_called_module(fact, texts))]
    for fact, module in traceable[:MAX_DIVERGENCE_FACTS] if partial else ():
        target = TraceTarget(
            sandbox=context.sandbox,
            settings=context.settings.sandbox,
            files=context.task.files,
            module=module,
            interpreter=context.interpreter,
        )
        expected_trace = await _trace_expected_run(fact, partial, texts, target)
        if expected_trace is not None:
            failing_trace = await run_traced_code(target, fact.call, trace=True)
            divergence = find_divergence(failing_trace, expected_trace)
            if divergence:
                divergences[fact.check_id] = divergence
    return divergences


async def _trace_expected_run(
    fact: Counterexample, partial: Sequence[Proposal], texts: Mapping[str, str], target: TraceTarget
) -> RunTrace | None:
    """Return the trace of the call on a partial repair on which it returns the expected value, if any."""
    for change in partial[:MAX_DIVERGENCE_CHANGES]:
        text = apply_edits(texts[change.path], change.edits)
        repaired_target = replace(target, files=overlay_candidate(target.files, {change.path: text}))
        trace = await run_traced_code(repaired_target, fact.call, trace=True)
        if trace.ending == "returned" and _is_same(trace.value, fact.expected):
            return trace
    return None


def _is_same(value: str, expected: str) -> bool:
    """Return whether two strings are literals of the same type and value."""
    if not (_is_literal(value) and _is_literal(expected)):
        return False
    actual_value, expected_value = ast.literal_eval(value), ast.literal_eval(expected)
    return type(actual_value) is type(expected_value) and bool(actual_value == expected_value)


def _is_literal(text: str) -> bool:
    """Return whether a string is a literal that was not cut."""
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return False
    return "..." not in text


def _find_called_module(fact: Counterexample, texts: Mapping[str, str]) -> str:
    """Return the only file that defines the called function at its top level; empty if there is none, or if
    an argument of the call is not a literal.
    """
    tree = parse_module(fact.call)
    node = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not fact.expected:
        return ""
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not all(_is_literal(ast.unparse(argument)) for argument in arguments):
        return ""
    name = call.func.id
    modules = [path for path, text in texts.items() if _defines(text, name)]
    return modules[0] if len(modules) == 1 else ""


def _defines(text: str, name: str) -> bool:
    tree = parse_module(text)
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef)) if tree else ()
    return any(function.name == name for function in functions)


async def find_suspect_hunks(project: FailingProject, context: RunContext) -> tuple[Hunk, ...]:
    """Return the hunks of the change that broke the tests; none if the history does not show it.

    The present tests run on the code of earlier commits. If they pass on none of it, and the user named a
    commit, everything that changed since that commit is suspected.
    """
    task = context.task
    if not project.failing() or not any(version.files for version in task.earlier_versions):
        return ()
    history = _History(project, context)
    good, bad = await history.find_change()
    context.ledger.append(
        HistorySearched(
            since=task.since,
            runs=history.runs,
            last_good="" if good is None else task.earlier_versions[good].commit,
            first_bad="" if good is None else history.describe(bad),
        )
    )
    if good is not None:
        return compute_hunks(history.texts_at(good), history.texts_at(bad))
    oldest = len(task.earlier_versions) - 1
    return compute_hunks(history.texts_at(oldest), project.texts) if task.since else ()


class _History:
    """The versions of a task's files, the newest first; version -1 is the present code."""

    def __init__(self, project: FailingProject, context: RunContext) -> None:
        self._command, self._failing, self._texts = project.command, project.failing(), project.texts
        self._task = context.task
        self._versions = context.task.earlier_versions
        self.runs = 0

    async def find_change(self) -> tuple[int | None, int]:
        """Return `(newest version on which the tests pass, next newer version)`.

        The first is `None` if the tests pass on no version that was tried.
        """
        # Without files, the newest version is the same as the present code, on which the tests fail.
        bad = -1 if self._versions[0].files else 0
        if self._task.since and await self._passes(len(self._versions) - 1):
            return await self._bisect(len(self._versions) - 1, bad)
        # If the user did not choose the oldest version, it is often older than the code that the tests are about, so
        # that a failure there says nothing. Growing steps backwards find a version that passes.
        step = 1
        while bad + step < len(self._versions):
            if await self._passes(bad + step):
                return await self._bisect(bad + step, bad)
            bad, step = bad + step, 2 * step
        return None, bad

    async def _bisect(self, good: int, bad: int) -> tuple[int, int]:
        while good - bad > 1:
            middle = (good + bad) // 2
            if await self._passes(middle):
                good = middle
            else:
                bad = middle
        return good, bad

    async def _passes(self, number: int) -> bool:
        self.runs += 1
        older = {path: text for path, text in self._versions[number].files.items() if path in self._texts}
        files = overlay_candidate(self._task.files, older)
        outcomes = await self._command.run_selected(files, self._failing, MAX_HISTORY_RUN_S)
        return len(outcomes) == len(self._failing) and all(outcome.passed for outcome in outcomes)

    def texts_at(self, number: int) -> dict[str, str]:
        """Return the files that may change, as they were in a version: path -> text."""
        older = self._versions[number].files if number >= 0 else {}
        return {path: older.get(path, text) for path, text in self._texts.items()}

    def describe(self, number: int) -> str:
        """Return a version's commit and subject, for people."""
        if number < 0:
            return "changes that are not committed"
        return f"{self._versions[number].commit} {self._versions[number].subject}".strip()
