"""All evaluators, ours and those of other packages, on one piece of accepted code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from suture.errors import SandboxError, UsageError
from suture.judge.quality.evaluator import Evaluator, QualityResult, QualitySubject
from suture.judge.quality.source_metrics import Complexity, Docstrings, Lines
from suture.judge.quality.tool_metrics import Covered, Lint, Security

GROUP = "suture.evaluators"
"""The group of entry points: name -> what makes an evaluator, called without arguments; a class will do."""
BUILT_IN: tuple[type[Evaluator], ...] = (Lines, Docstrings, Complexity, Lint, Security, Covered)


@dataclass(frozen=True, kw_only=True)
class Missing:
    """An evaluator of another package that cannot be loaded, and why."""

    name: str
    reason: str

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Say why there is no measurement."""
        return QualityResult(absent=self.reason)


def evaluators(names: Sequence[str] = ()) -> tuple[Evaluator, ...]:
    """Our evaluators, then those that installed packages offer, by name.

    Args:
        names: Only these; all where it is empty.

    Raises:
        UsageError: There is none of a name, or two of one.
    """
    found: dict[str, Evaluator] = {made.name: made for made in (kind() for kind in BUILT_IN)}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name in found:
            raise UsageError(
                f"there are two evaluators called {point.name!r}",
                remedy=f"rename or uninstall the one of {point.value.partition(':')[0]}",
            )
        found[point.name] = _loaded(point)
    unknown = [name for name in names if name not in found]
    if unknown:
        raise UsageError(
            f"there is no evaluator called {unknown[0]!r}", remedy=f"there are {', '.join(found)}"
        )
    return tuple(found[name] for name in names or found)


def _loaded(point: EntryPoint) -> Evaluator:
    try:
        made: Any = point.load()()
    except Exception as fault:  # importing a package runs its code, which may raise anything
        return Missing(name=point.name, reason=f"{point.value} cannot be loaded: {_describe_fault(fault)}")
    if not isinstance(made, Evaluator):
        return Missing(name=point.name, reason=f"{point.value} makes no evaluator (name, evaluate)")
    return made


async def measure_quality(subject: QualitySubject, names: Sequence[str] = ()) -> dict[str, QualityResult]:
    """Run evaluators one after the other; one of another package that raises has measured nothing.

    Args:
        subject: The accepted code that is measured.
        names: As in `evaluators`.

    Returns:
        Name of the evaluator -> what it found.

    Raises:
        UsageError: As `evaluators`; or a path of the code leaves the project.
        SandboxError: The wall failed.
    """
    return {made.name: await _measured(made, subject) for made in evaluators(names)}


async def _measured(made: Evaluator, subject: QualitySubject) -> QualityResult:
    if isinstance(made, BUILT_IN):
        return await made.evaluate(subject)
    try:
        found: object = await made.evaluate(subject)
    except SandboxError:
        raise
    except Exception as fault:  # whatever a package raises is its own fault, and no reason to lose the others
        return QualityResult(absent=f"{made.name} failed: {_describe_fault(fault)}")
    return (
        found
        if isinstance(found, QualityResult)
        else QualityResult(absent=f"{made.name} answered no `QualityResult`")
    )


def _describe_fault(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"


def flatten_quality(measured: Mapping[str, QualityResult]) -> dict[str, float]:
    """Every metric that was measured; one of an evaluator from elsewhere is called `evaluator.metric`."""
    own = {kind().name for kind in BUILT_IN}
    return {
        metric if name in own else f"{name}.{metric}": float(value)
        for name, found in measured.items()
        for metric, value in found.values.items()
    }
