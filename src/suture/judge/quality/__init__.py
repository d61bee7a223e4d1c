"""Quality of accepted code: evaluators, each of which measures one aspect of it.

This package owns the protocol of an evaluator, the evaluators that ship with Suture, the linter run, and the
loading of evaluators from other packages. An evaluator decides nothing: checks decide whether code is right.
Measured code runs inside the sandbox or not at all.
"""

from suture.judge.quality.evaluator import QualityResult, QualitySubject
from suture.judge.quality.measurement import flatten_quality, measure_quality

__all__ = ["QualityResult", "QualitySubject", "flatten_quality", "measure_quality"]
