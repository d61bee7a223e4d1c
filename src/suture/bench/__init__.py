"""Benchmarks: data sets, runs at equal budget, grading by hidden checks, statistics, reports and the gate.

Hidden checks are read here and nowhere else, and only after a run has ended. Ray and MLflow are optional; each is
used in one folder, and only when it is requested.
"""

from suture.bench.datasets import load_problems
from suture.bench.grading.hidden_checks import Grade, grade_code
from suture.bench.problem import Problem, build_task

__all__ = ["Grade", "Problem", "build_task", "grade_code", "load_problems"]
