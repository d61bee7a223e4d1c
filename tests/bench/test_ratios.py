"""The comparison of two versions fails if one figure is slower than allowed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize(
    ("new_times", "median", "is_worse"),
    [
        ((1.3, 1.3, 1.3), 1.3, True),
        ((1.2, 1.2, 1.2), 1.2, False),
        ((1.0, 9.0, 1.1), 1.1, False),  # one slow round is chance
        ((0.5, 0.5, 0.5), 0.5, False),
    ],
)
def test_a_figure_is_worse_if_its_median_ratio_exceeds_the_limit(
    monkeypatch: pytest.MonkeyPatch, new_times: tuple[float, ...], median: float, is_worse: bool
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))  # `benchmarks/` is not a package
    ratios = importlib.import_module("ratios")
    rounds = [({"a": 2.0, "b": 1.0}, {"a": 2.0 * new, "b": 1.0}) for new in new_times]
    compared, unchanged = ratios.compare(rounds, 1.25)
    assert (compared.figure, compared.is_worse) == ("a", is_worse)
    assert compared.median == pytest.approx(median)
    assert (unchanged.median, unchanged.is_worse) == (1.0, False)
