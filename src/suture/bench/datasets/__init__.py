"""Benchmark data sets as problems; they are not part of the project and are read from the user's machine."""

from suture.bench.datasets.catalogue import DATASETS, load_problems

__all__ = ["DATASETS", "load_problems"]
