"""Fit the constants of `judge/confidence.py` to graded claims, and report how reliable they are.

The model is logistic with few features. Each coefficient has a fixed sign and is pulled towards a small effect
(ridge), because there are few wrong claims, and one of them could otherwise decide a constant. Half of the
claims are used for fitting; the figures are printed for both halves.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from suture.judge.confidence import MIN_DOUBT, ConfidenceInputs, confidence_features
from suture.judge.tuning import SELECTED_MUTANTS

__all__ = ["confidence_inputs", "print_fit"]

PRIOR_COEFFICIENT = 0.5
"""Coefficients are pulled towards this value: a small effect, unless the claims show another one."""
RIDGE = 1.0
"""Strength of the pull: weight of half the squared distance, relative to the log loss of all claims."""
STEPS, RATE = 20_000, 0.05
BINS = (0.0, 0.5, 0.7, 0.8, 0.9, 1.0)
Z = 1.96

Row = Mapping[str, Any]
Model = Sequence[float]


def confidence_inputs(row: Row) -> ConfidenceInputs:
    """Return the inputs of the confidence of a claim, as in a run where each test is the user's."""
    none = row["mutation_unmeasured"] == "no_mutants"
    drawn = SELECTED_MUTANTS if row["mutation_unmeasured"] else row["mutants"]
    compared = row["differs"] or row["behaviours"] == 1
    others = sum(1 + alike for alike in row["alike"]) - 1
    return ConfidenceInputs(
        fixed=float(row["fixed"]),
        mutation_score=None if none else row["killed"] / drawn,
        rivals=others - row["alike"][row["chosen"]] if compared and row["chosen"] >= 0 else None,
    )


def print_fit(rows: Sequence[Row]) -> None:
    """Print the fitted constants, and how reliable they are on claims that were not used for fitting."""
    claims = [row for row in rows if row.get("compared")]
    parts = {part: [row for row in claims if row["part"] == part] for part in ("fit", "report")}
    model = fit_model(
        [(confidence_features(confidence_inputs(row)), bool(row["right"])) for row in parts["fit"]]
    )
    print("constants:", ", ".join(f"{value:.2f}" for value in model))

    def new(row: Row) -> float:
        return min(
            _probability(model, confidence_features(confidence_inputs(row))), 1 - MIN_DOUBT[row["evidence"]]
        )

    for part, some in parts.items():
        wrong = sum(not row["right"] for row in some)
        print(f"{part}: {len(some)} claims, {wrong} wrong ({_sets(some)})")
        for name, of in (("as the runs had it", lambda row: float(row["confidence"])), ("fitted", new)):
            pairs = [(of(row), bool(row["right"])) for row in some]
            print(f"  {name}: {_sums(pairs)}")
            for line in _reliability(pairs):
                print(f"    {line}")


def fit_model(examples: Sequence[tuple[Sequence[float], bool]]) -> list[float]:
    """Return the coefficients of a logistic model, the intercept first; each other one is at least 0.

    Args:
        examples: Features, larger ones being better, and whether the claim was right.
    """
    model = [1.0, *(0.0 for _ in examples[0][0])]
    count = len(examples)
    for _ in range(STEPS):
        slopes = [0.0] * len(model)
        for features, right in examples:
            off = _probability(model, features) - right
            for place, value in enumerate((1.0, *features)):
                slopes[place] += off * value / count
        for place in range(len(model)):
            pull = RIDGE * (model[place] - PRIOR_COEFFICIENT) / count if place else 0.0
            moved = model[place] - RATE * (slopes[place] + pull)
            model[place] = max(0.0, moved) if place else moved
    return model


def _probability(model: Model, features: Sequence[float]) -> float:
    return 1 / (1 + math.exp(-sum(a * b for a, b in zip(model, (1.0, *features), strict=True))))


def _sums(pairs: Sequence[tuple[float, bool]]) -> str:
    brier = sum((value - right) ** 2 for value, right in pairs) / len(pairs)
    return f"ECE {_ece(pairs):.3f}, Brier {brier:.3f}, AUC {_auc(pairs)}"


def _binned(pairs: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, float, list[tuple[float, bool]]]]:
    for low, high in itertools.pairwise(BINS):
        inside = [pair for pair in pairs if low <= pair[0] < high or pair[0] == high == 1.0]
        if inside:
            yield low, high, inside


def _ece(pairs: Sequence[tuple[float, bool]]) -> float:
    """Return the expected calibration error over the bins."""
    off = 0.0
    for _, _, inside in _binned(pairs):
        off += abs(sum(value for value, _ in inside) - sum(right for _, right in inside))
    return off / len(pairs)


def _auc(pairs: Sequence[tuple[float, bool]]) -> str:
    """Return the chance that a right claim has a higher value than a wrong one; equal ones count half."""
    right = [value for value, is_right in pairs if is_right]
    wrong = [value for value, is_right in pairs if not is_right]
    if not right or not wrong:
        return "-"
    better = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
    return f"{better / len(right) / len(wrong):.2f}"


def _reliability(pairs: Sequence[tuple[float, bool]]) -> Iterator[str]:
    for low, high, inside in _binned(pairs):
        right = sum(is_right for _, is_right in inside)
        stated = sum(value for value, _ in inside) / len(inside)
        least, most = _wilson(right, len(inside))
        yield (
            f"{low:.1f} to {high:.1f}: {right} of {len(inside)} right "
            f"(95% {least:.2f} to {most:.2f}), stated {stated:.2f}"
        )


def _wilson(right: int, count: int) -> tuple[float, float]:
    """Return the 95% interval of a share (Wilson, 1927)."""
    share = right / count
    middle = share + Z * Z / (2 * count)
    spread = Z * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return (middle - spread) / (1 + Z * Z / count), (middle + spread) / (1 + Z * Z / count)


def _sets(rows: Sequence[Row]) -> str:
    counts = Counter(row["set"] for row in rows)
    return ", ".join(f"{name} {count}" for name, count in counts.items())
