"""Measuring: problems with hidden tests, runs at equal budget, and what the numbers can bear.

Hidden checks are opened here and nowhere else, and only after a run has ended.
"""

from suture.bench.datasets import load_problems
from suture.bench.grading.hidden_checks import Grade, grade_code
from suture.bench.problem import Problem, task_of

__all__ = ["Grade", "Problem", "grade_code", "load_problems", "task_of"]
