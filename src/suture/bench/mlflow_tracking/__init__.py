"""MLflow: upload a benchmark from its folder after the fact, never during a run.

This package turns rows and run folders into MLflow runs. It measures nothing and keeps no state.
"""

from suture.bench.mlflow_tracking.mlflow_runs import track_benchmark

__all__ = ["track_benchmark"]
