"""Rank the functions that may be at fault: by tracebacks, by coverage, and by the names in the failing tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from suture.agents.context.code_units import CodeUnit, find_unit, group_by_name
from suture.agents.context.failure_causes import FailureCause, project_frames
from suture.agents.context.python_test_source import TestSource, find_module_path
from suture.core.ledger.kinds import SuspectLine

# The weights order evidence: an exception in a function says more than that tests run it. Chosen by judgement on
# ten bug-fix commits; not measured.
RAISING_WEIGHT = 6.0
OUTER_FRAME_FACTOR = 0.6
"""Weight of a frame, relative to that of the frame inside it."""
COVERAGE_WEIGHT = 3.0
CALLED_WEIGHT = 3.0
"""Weight of a function that the failing statement calls."""
NAMED_WEIGHT = 1.0
"""Weight of a function that the test names elsewhere."""
MESSAGE_WEIGHT = 4.0
"""Weight of a class, function or attribute that the exception's message quotes."""
ATTRIBUTE_WEIGHT = 0.5
"""Weight of a function that has the name of an attribute in the test."""
USER_WEIGHT = 1.5
"""Weight of one of the few functions that use an attribute in the test, such as a switch that the test sets."""
ASSIGNING_METHODS = ("__setattr__", "__set__")
"""Methods that run where a test assigns an attribute."""
SIMILAR_NAME_WEIGHT = 2.5
"""Weight of a function all of whose words are in the test's name."""
MIN_SIMILARITY = 0.5
"""Share of a function's words that the test's name must have."""
SAME_FILE_WEIGHT = 4.0
"""Weight of a function in the file that the test's file is named after, such as `cart.py` for `test_cart.py`."""
MAX_SMALL_FILE_FUNCTIONS = 10
"""Functions of the file that the test's file is named after, up to which functions count that nothing else points
at."""
CONSTRUCTOR_FACTOR = 0.5
"""Weight of a class's constructor, relative to that of a function in its place: most tests only need an object."""
CALLEE_FACTOR = 0.45
"""Weight of a function, relative to that of the function that calls it."""
CONSTRUCTORS = ("__init__", "constructor")
MAX_CALL_DEPTH = 3
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
"""A word of a name in snake case or camel case."""
TEST_AFFIX = re.compile(r"^tests?[_-]|[_-]?(?:tests?|spec)$", re.IGNORECASE)
QUOTED_NAME = re.compile(r"['\"`](?:[\w.]+\.)?([A-Za-z_]\w+)['\"`]|\b([A-Za-z_]\w+)\(\)")
"""A name that a message quotes, or writes as a call."""
MAX_SAME_NAME = 3
"""Maximum number of functions with a quoted name; a name that more functions have does not show which one is meant."""
MAX_QUOTED_USERS = 6
"""Maximum number of functions that use a quoted name; if there are more, none of them counts."""
QUOTED_USER_FACTOR = 0.5
"""Weight of a function that uses a quoted name, relative to that of one that has the name."""
MISSING_ATTRIBUTE = re.compile(r"has no attribute ['\"`](\w+)")
"""Matches the message of an AttributeError. Other code that assigns, defines or reads the attribute shows what it
should be."""
MISSING_ATTRIBUTE_FACTOR = 2.0
"""Weight of a function that uses a missing attribute, relative to that of functions with another quoted name."""


@dataclass
class RankedCode:
    """Functions with the evidence against them.

    Attributes:
        scores: Function -> score; higher is more suspicious.
        lines: Path -> lines that raised or that only failing tests run, the most suspicious first.
    """

    scores: dict[CodeUnit, float] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)

    def add(self, unit: CodeUnit, score: float) -> None:
        """Add to the score of a function."""
        self.scores[unit] = self.scores.get(unit, 0.0) + score

    def ordered(self) -> list[CodeUnit]:
        """Return the functions, the most suspicious first."""
        return sorted(self.scores, key=lambda unit: (-self.scores[unit], unit.path, unit.first))


def rank_code(
    units_by_path: Mapping[str, Sequence[CodeUnit]],
    causes: Sequence[FailureCause],
    sources: Sequence[TestSource],
    suspects: Sequence[SuspectLine],
) -> RankedCode:
    """Return the functions that may be at fault.

    Args:
        units_by_path: The units of each file that may change.
        sources: The sources of the failing tests, as far as they were found.
        suspects: Suspicious lines of the same files, by coverage.
    """
    ranked = RankedCode()
    for cause in causes:
        _add_frames(ranked, units_by_path, cause)
        _add_message(ranked, units_by_path, cause)
    _add_coverage(ranked, units_by_path, suspects)
    _add_names(ranked, units_by_path, sources, {(line.path, line.function) for line in suspects})
    for cause in causes:
        _add_similar_names(ranked, units_by_path, cause.fact.check_id)
    return ranked


def _add_frames(
    ranked: RankedCode, units_by_path: Mapping[str, Sequence[CodeUnit]], cause: FailureCause
) -> None:
    weight, framed = RAISING_WEIGHT, set[CodeUnit]()
    for frame in project_frames(cause.fact):
        unit = find_unit(units_by_path.get(frame.file, ()), frame.line)
        if unit is None or unit in framed:
            continue
        framed.add(unit)
        ranked.lines.setdefault(frame.file, []).append(frame.line)
        ranked.add(unit, weight)
        weight *= OUTER_FRAME_FACTOR


def _add_message(
    ranked: RankedCode, units_by_path: Mapping[str, Sequence[CodeUnit]], cause: FailureCause
) -> None:
    """Add what an exception's message quotes: `'Cart' object has no attribute 'total'` is about both names."""
    matches = QUOTED_NAME.findall(cause.fact.exception)
    missing = MISSING_ATTRIBUTE.findall(cause.fact.exception)
    for name in {first or second for first, second in matches}:
        weight = MESSAGE_WEIGHT * (MISSING_ATTRIBUTE_FACTOR if name in missing else 1.0)
        found = [
            unit
            for units in units_by_path.values()
            for unit in units
            if unit.kind != "import" and (unit.short_name == name or name in unit.binds)
        ]
        for unit in found if len(found) <= MAX_SAME_NAME else ():
            ranked.add(unit, weight)
        users = [
            unit
            for units in units_by_path.values()
            for unit in units
            if unit.kind == "function" and name in unit.names and unit not in found
        ]
        for unit in users if len(users) <= MAX_QUOTED_USERS else ():
            ranked.add(unit, QUOTED_USER_FACTOR * weight)


def _add_coverage(
    ranked: RankedCode, units_by_path: Mapping[str, Sequence[CodeUnit]], suspects: Sequence[SuspectLine]
) -> None:
    highest = max((line.score for line in suspects), default=0.0)
    best: dict[CodeUnit, float] = {}
    for line in suspects:
        unit = find_unit(units_by_path.get(line.path, ()), line.line)
        if unit is not None and highest:
            best[unit] = max(best.get(unit, 0.0), line.score / highest)
            if line.score == highest:
                ranked.lines.setdefault(line.path, []).append(line.line)
    for unit, share in best.items():
        ranked.add(unit, COVERAGE_WEIGHT * share)


def _add_names(
    ranked: RankedCode,
    units_by_path: Mapping[str, Sequence[CodeUnit]],
    sources: Sequence[TestSource],
    covered: Collection[tuple[str, str]],
) -> None:
    """Add functions that the tests name, and what those call, where the names resolve into the project."""
    by_name = group_by_name(units_by_path)
    reached: dict[CodeUnit, float] = {}
    for source in sources:
        attributes = source.attributes - source.calls
        others = source.used - source.calls - attributes
        for weight, names in (
            (CALLED_WEIGHT, source.calls),
            (NAMED_WEIGHT, others),
            (ATTRIBUTE_WEIGHT, attributes),
        ):
            for name in sorted(names):
                found = list(_resolve(name, source, units_by_path, by_name))
                if weight == ATTRIBUTE_WEIGHT and not any(unit.kind == "function" for unit in found):
                    _add_users(reached, name, units_by_path)
                for unit in found:
                    share = CONSTRUCTOR_FACTOR if unit.short_name in CONSTRUCTORS else 1.0
                    reached[unit] = max(reached.get(unit, 0.0), weight * share / len(found))
        setters = [unit for name in ASSIGNING_METHODS for unit in by_name.get(name, ()) if source.assigned]
        if len(setters) <= MAX_QUOTED_USERS:
            reached |= dict.fromkeys(setters, CALLED_WEIGHT)
    frontier = dict(reached)
    for _ in range(MAX_CALL_DEPTH):
        following: dict[CodeUnit, float] = {}
        for unit, weight in frontier.items():
            for callee in _find_callees(unit, by_name):
                if callee not in reached:
                    following[callee] = max(following.get(callee, 0.0), weight * CALLEE_FACTOR)
        reached |= following
        frontier = following
    for unit, weight in reached.items():
        # If coverage is known, a function that no failing test runs is named by accident.
        is_run = not covered or (unit.path, unit.short_name) in covered or unit.kind != "function"
        ranked.add(unit, weight if is_run else weight * 0.1)


def _add_users(
    reached: dict[CodeUnit, float], name: str, units_by_path: Mapping[str, Sequence[CodeUnit]]
) -> None:
    """Add the functions that use an attribute, if they are few."""
    users = [
        unit
        for units in units_by_path.values()
        for unit in units
        if unit.kind == "function" and name in unit.names
    ]
    for unit in users if len(users) <= MAX_SAME_NAME else ():
        reached[unit] = max(reached.get(unit, 0.0), USER_WEIGHT)


def _add_similar_names(
    ranked: RankedCode, units_by_path: Mapping[str, Sequence[CodeUnit]], test_id: str
) -> None:
    """Add the functions after which the test or its file is named."""
    path, _, name = test_id.partition("::")
    stem = TEST_AFFIX.sub("", PurePosixPath(path).name.partition(".")[0])
    # The last name in JavaScript, Go and Python, without the parameters of the case.
    words = _words(re.split(r"::| > |/", name.partition("[")[0])[-1]) - {"test"}
    for unit_path, units in units_by_path.items():
        is_named_after = PurePosixPath(unit_path).name.partition(".")[0].lower() == stem.lower()
        functions = [unit for unit in units if unit.kind == "function"]
        for unit in functions:
            own = _words(unit.short_name)
            share = len(own & words) / len(own) if own else 0.0
            if share >= MIN_SIMILARITY:
                common = len(own & words)  # a single common word, such as `error`, says little
                ranked.add(unit, SIMILAR_NAME_WEIGHT * share * common / (common + 1))
            if is_named_after and path != unit_path:
                has_evidence = unit in ranked.scores
                if has_evidence or len(functions) <= MAX_SMALL_FILE_FUNCTIONS:
                    ranked.add(unit, SAME_FILE_WEIGHT if has_evidence else SAME_FILE_WEIGHT / 2)


def _words(name: str) -> set[str]:
    return {word.lower() for word in WORD.findall(name)}


def _resolve(
    name: str,
    source: TestSource,
    units_by_path: Mapping[str, Sequence[CodeUnit]],
    by_name: Mapping[str, Sequence[CodeUnit]],
) -> Iterable[CodeUnit]:
    """Return the units that a name in a test may mean; the constructor stands for a class."""
    module, attribute = source.imports.get(name, ("", ""))
    path = find_module_path(module, units_by_path) if module else None
    if path is not None and attribute:
        own = [unit for unit in units_by_path[path] if unit.name == attribute and unit.kind != "import"]
        found: Sequence[CodeUnit] = own or by_name.get(attribute, ())
    else:
        found = by_name.get(name, ())
    if len(found) > MAX_SAME_NAME:
        return ()
    return [constructor for unit in found for constructor in _constructors(unit, units_by_path)]


def _constructors(unit: CodeUnit, units_by_path: Mapping[str, Sequence[CodeUnit]]) -> list[CodeUnit]:
    if unit.kind != "class":
        return [unit]
    names = [f"{unit.name}.{name}" for name in CONSTRUCTORS]
    return [other for other in units_by_path[unit.path] if other.name in names] or [unit]


def _find_callees(unit: CodeUnit, by_name: Mapping[str, Sequence[CodeUnit]]) -> list[CodeUnit]:
    """Return the functions that a function calls: of its own class or file before others of the same name."""
    callees = []
    for name in sorted(unit.calls):
        found = [other for other in by_name.get(name, ()) if other != unit and other.kind == "function"]
        near = [other for other in found if other.path == unit.path and other.owner in (unit.owner, "")]
        chosen = near or found
        callees += chosen if len(chosen) <= MAX_SAME_NAME else []
    return callees
