"""The quality of accepted code: evaluators, each of which measures one side of it.

This folder owns the protocol of an evaluator, those that ship with Suture, and how those of other packages
are found. An evaluator decides nothing: whether code is right is the business of checks. Code under
measurement runs behind the wall or not at all.
"""

from suture.judge.quality.evaluator import QualityResult, QualitySubject
from suture.judge.quality.measurement import flatten_quality, measure_quality

__all__ = ["QualityResult", "QualitySubject", "flatten_quality", "measure_quality"]
