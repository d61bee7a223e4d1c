"""Where a fault may lie: spectra of passing and failing tests, tracebacks, and what tests call.

Ochiai: Abreu et al., PRDC 2006. DStar with * = 2: Wong et al., IEEE Trans. Reliability 63(1), 2014.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from suture.core.ledger.kinds import SuspectLine
from suture.judge.trials.trial_records import Spectrum
from suture.mutation.python.python_tree import FUNCTIONS, PythonTree, parse_python_tree
from suture.project.python_source.parsing import first_line

SPECTRUM, FRAME, CALLED = 0.8, 0.1, 0.1
"""Shares of the evidence in a score: they add up to 1."""
HEADER = 0.9
"""A function's first line beside its worst line: guards and defaults are added there."""
IMPORTED = 0.4
"""A line that ran on import beside one that ran in a failing test."""
BOUND = 0.8
"""What an import gives a name, beside the worst line of a function that reads it."""
TABLE = 10
"""Lines of what is given, beyond which they share that: of a table a test reads a few lines."""


def ochiai(failed: int, passed: int, all_failed: int) -> float:
    """Suspiciousness of a line that `failed` failing and `passed` passing tests ran, of `all_failed`."""
    under = math.sqrt(all_failed * (failed + passed))
    return failed / under if under else 0.0


def dstar(failed: int, passed: int, all_failed: int) -> float:
    """As `ochiai`; without a bound, infinite where every failing test and no passing one ran the line."""
    under = passed + (all_failed - failed)
    return failed**2 / under if under else math.inf if failed else 0.0


def rank_suspects(spectrum: Spectrum, texts: Mapping[str, str]) -> tuple[SuspectLine, ...]:
    """The lines that failing tests ran, the most suspicious first.

    Args:
        spectrum: What the tests did.
        texts: Path -> text of the files that may be at fault.
    """
    views = {path: view for path, text in texts.items() if (view := parse_python_tree(text)) is not None}
    faults: list[SuspectLine] = []
    counts = _counts(spectrum, texts)
    frames = _frame_shares(spectrum)
    called = {(call.path, call.line) for call in spectrum.calls}
    all_failed = max(1, len(spectrum.failing))
    stars = {place: dstar(f, p, all_failed) for place, (f, p) in counts.items()}
    top = max((star for star in stars.values() if star != math.inf), default=1.0) or 1.0
    for (path, line), (failed, passed) in counts.items():
        star = 1.0 if stars[path, line] == math.inf else stars[path, line] / (2 * top)
        share = ochiai(failed, passed, all_failed)
        holder = _function_at(views[path], line) if path in views else None
        near = holder is not None and (path, first_line(holder)) in called
        score = SPECTRUM * (0.8 * share + 0.2 * star)
        score += FRAME * frames.get((path, line), 0.0) + CALLED * near
        name = holder.name if holder is not None else ""
        faults.append(SuspectLine(path=path, line=line, function=name, score=score, ochiai=share, dstar=star))
    return tuple(sorted(faults, key=lambda fault: (-fault.score, fault.path, fault.line)))


def score_lines(
    faults: tuple[SuspectLine, ...], spectrum: Spectrum, texts: Mapping[str, str]
) -> dict[str, dict[int, float]]:
    """Path -> line -> score, for every line that may be changed: whole statements, headers, imports."""
    scores: dict[str, dict[int, float]] = {}
    for fault in faults:
        scores.setdefault(fault.path, {})[fault.line] = fault.score
    top = max((fault.score for fault in faults), default=1.0)
    named = _read_where_it_failed(spectrum, texts)
    for path, text in texts.items():
        view = parse_python_tree(text)
        if view is None:
            continue
        own = scores.setdefault(path, {})
        if not faults:  # nothing was run: what was imported is all there is to go by
            own.update(dict.fromkeys(spectrum.imported.get(path, ()), 1.0))
        _spread(view, own)
        _add_named(view, own, named, top)
        if any(line in own for line in spectrum.imported.get(path, ())) or own:
            for line in spectrum.imported.get(path, ()):
                own.setdefault(line, IMPORTED * max(own.values(), default=top))
        _add_bound(view, own)
    return {path: own for path, own in scores.items() if own}


def _read_where_it_failed(spectrum: Spectrum, texts: Mapping[str, str]) -> frozenset[str]:
    """Attributes that are read and not called on the innermost lines of tracebacks."""
    places = {test.frames[-1] for test in spectrum.failing if test.frames}
    found: set[str] = set()
    for path in {path for path, _ in places} & texts.keys():
        view, lines = parse_python_tree(texts[path]), {line for where, line in places if where == path}
        for node in ast.walk(view.tree) if view is not None else ():
            if isinstance(node, ast.Attribute) and node.lineno in lines and view is not None:
                parent = view.parent(node)
                if not (isinstance(parent, ast.Call) and parent.func is node):
                    found.add(node.attr)
    return frozenset(found)


def _add_named(view: PythonTree, own: dict[int, float], named: frozenset[str], top: float) -> None:
    """The heads of methods that are read as if they were values: without its decorator, none of them runs."""
    for node in view.functions_in_order if named else ():
        if node.name in named and not node.decorator_list:
            own[node.lineno] = max(own.get(node.lineno, 0.0), HEADER * top)


def _add_bound(view: PythonTree, own: dict[int, float]) -> None:
    """What a module or a class gives a name is as suspicious, nearly, as the worst line that reads it.

    It ran on import, before any test: of all such lines it is the one that a failing test made use of.
    """
    reads: dict[str, float] = {}
    given: list[tuple[ast.stmt, set[str]]] = []
    for node in ast.walk(view.tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if node.lineno in own and view.enclosing_function(node) is not None:
                name = node.id if isinstance(node, ast.Name) else node.attr
                reads[name] = max(reads.get(name, 0.0), own[node.lineno])
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and view.enclosing_function(node) is None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given.append((node, {t.id for t in targets if isinstance(t, ast.Name)}))
    for node, names in given:
        worst = max((reads.get(name, 0.0) for name in names), default=0.0)
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        score = BOUND * worst * min(1.0, TABLE / len(lines))
        for line in lines if worst else ():
            own[line] = max(own.get(line, 0.0), score)


def _spread(view: PythonTree, own: dict[int, float]) -> None:
    """A statement of several lines is as suspicious as its worst line; so is a function's header, nearly."""
    for node in ast.walk(view.tree):
        if isinstance(node, FUNCTIONS):
            worst = max((own.get(line, 0.0) for line in _lines(node)), default=0.0)
            if worst:
                for line in range(first_line(node), node.body[0].lineno):
                    own[line] = max(own.get(line, 0.0), HEADER * worst)
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
            span = range(node.lineno, max(last, node.lineno) + 1)
            worst = max((own.get(line, 0.0) for line in span), default=0.0)
            if worst:
                own.update(dict.fromkeys(span, worst))


def _counts(spectrum: Spectrum, texts: Mapping[str, str]) -> dict[tuple[str, int], tuple[int, int]]:
    """Line -> how many failing and how many passing tests ran it; lines of no failing test are left out."""
    counts: dict[tuple[str, int], tuple[int, int]] = {}
    for test in spectrum.tests:
        if test.outcome == "skipped":
            continue
        for path, lines in test.lines.items():
            for line in lines if path in texts else ():
                failed, passed = counts.get((path, line), (0, 0))
                counts[path, line] = (failed + test.failed, passed + (not test.failed))
    return {place: count for place, count in counts.items() if count[0]}


def _frame_shares(spectrum: Spectrum) -> dict[tuple[str, int], float]:
    """How often a line stood in the traceback of a failing test, the innermost frame counting in full."""
    shares: dict[tuple[str, int], float] = {}
    for test in spectrum.failing:
        for depth, place in enumerate(reversed(test.frames[-8:])):
            shares[place] = max(shares.get(place, 0.0), 1.0 / (1 + depth))
    return shares


def _function_at(view: PythonTree, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function whose lines hold a line."""
    holders = [n for n in view.functions_in_order if n.lineno <= line <= (n.end_lineno or n.lineno)]
    return max(holders, key=lambda node: node.lineno, default=None)


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    return range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
