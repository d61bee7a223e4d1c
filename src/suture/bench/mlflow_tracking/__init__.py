"""Benchmarks in MLflow: read from their folders after the fact, and never in the way of a run.

This room turns rows and run folders into MLflow's words. It measures nothing and keeps nothing of its own.
"""

from suture.bench.mlflow_tracking.mlflow_runs import track_benchmark

__all__ = ["track_benchmark"]
