"""Benchmark sets as problems. None of them is part of the project: each is found where the user has it."""

from suture.bench.datasets.catalogue import DATASETS, load_problems

__all__ = ["DATASETS", "load_problems"]
