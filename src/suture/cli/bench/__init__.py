"""`suture bench`: measure recipes and models on problems with hidden tests.

It parses arguments, shows progress and prints tables; what is measured, and how, is `evals`.
"""

from suture.cli.bench.commands import bench_app

__all__ = ["bench_app"]
