"""Run evaluators, Suture's own and those of installed packages, on accepted code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from suture.errors import SandboxError, UsageError
from suture.judge.quality.built_in_evaluators import (
    Complexity,
    DocstringCoverage,
    LineCounts,
    LintFindings,
    SecurityFindings,
    StatementCoverage,
)
from suture.judge.quality.evaluator import Evaluator, QualityResult, QualitySubject

ENTRY_POINT_GROUP = "suture.evaluators"
"""Entry points of this group: name -> a class or function that returns an evaluator when called."""
BUILT_IN: tuple[type[Evaluator], ...] = (
    LineCounts,
    DocstringCoverage,
    Complexity,
    LintFindings,
    SecurityFindings,
    StatementCoverage,
)


@dataclass(frozen=True, kw_only=True)
class UnavailableEvaluator:
    """Stands for an evaluator of another package that cannot be loaded."""

    name: str
    reason: str

    async def evaluate(self, subject: QualitySubject) -> QualityResult:
        """Return why there is no measurement."""
        return QualityResult(unmeasured=self.reason)


def load_evaluators(names: Sequence[str] = ()) -> tuple[Evaluator, ...]:
    """Return Suture's evaluators, followed by those of installed packages, sorted by name.

    Args:
        names: The evaluators to return; all if empty.

    Raises:
        UsageError: An unknown name was given, or two evaluators have the same name.
    """
    evaluators: dict[str, Evaluator] = {
        evaluator.name: evaluator for evaluator in (kind() for kind in BUILT_IN)
    }
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        if point.name in evaluators:
            raise UsageError(
                f"two evaluators have the name {point.name!r}",
                remedy=f"rename or uninstall the one of {point.value.partition(':')[0]}",
            )
        evaluators[point.name] = _load(point)
    unknown = [name for name in names if name not in evaluators]
    if unknown:
        raise UsageError(
            f"there is no evaluator {unknown[0]!r}", remedy=f"the evaluators are {', '.join(evaluators)}"
        )
    return tuple(evaluators[name] for name in names or evaluators)


def _load(point: EntryPoint) -> Evaluator:
    try:
        evaluator: Any = point.load()()
    except Exception as fault:  # importing a package runs its code, which may raise anything
        reason = f"{point.value} cannot be loaded: {_describe_fault(fault)}"
        return UnavailableEvaluator(name=point.name, reason=reason)
    if not isinstance(evaluator, Evaluator):
        reason = f"{point.value} returns no evaluator (name, evaluate)"
        return UnavailableEvaluator(name=point.name, reason=reason)
    if evaluator.name != point.name:  # it is chosen by the one name, and its results are kept by the other
        reason = f"{point.value} has the name {evaluator.name!r}, and its entry point {point.name!r}"
        return UnavailableEvaluator(name=point.name, reason=reason)
    return evaluator


async def measure_quality(subject: QualitySubject, names: Sequence[str] = ()) -> dict[str, QualityResult]:
    """Run evaluators one after the other. One of another package that raises counts as unmeasured.

    Args:
        subject: The accepted code.
        names: The evaluators to run; all if empty.

    Returns:
        Name of the evaluator -> its result.

    Raises:
        UsageError: As in `load_evaluators`; or a path of the code is outside the project.
        SandboxError: The sandbox failed.
    """
    return {evaluator.name: await _measure(evaluator, subject) for evaluator in load_evaluators(names)}


async def _measure(evaluator: Evaluator, subject: QualitySubject) -> QualityResult:
    if isinstance(evaluator, BUILT_IN):
        return await evaluator.evaluate(subject)
    try:
        result: object = await evaluator.evaluate(subject)
    except SandboxError:
        raise
    except Exception as fault:  # a fault of one package must not lose the results of the others
        return QualityResult(unmeasured=f"{evaluator.name} failed: {_describe_fault(fault)}")
    if not isinstance(result, QualityResult):
        return QualityResult(unmeasured=f"{evaluator.name} returned no `QualityResult`")
    return result


def _describe_fault(fault: Exception) -> str:
    return f"{type(fault).__name__}: {fault}"


def flatten_quality(measured: Mapping[str, QualityResult]) -> dict[str, float]:
    """Return metric -> number. A metric of another package's evaluator is named `evaluator.metric`."""
    built_in_names = {kind().name for kind in BUILT_IN}
    return {
        metric if name in built_in_names else f"{name}.{metric}": float(value)
        for name, result in measured.items()
        for metric, value in result.values.items()
    }
