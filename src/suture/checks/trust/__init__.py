"""How far generated checks can be trusted: what they claim, what candidates did with them, a score.

This folder owns the trust of checks that a model wrote. A check below `loop.trust_threshold` may inform a
repair; it never decides one (law 4). It must not ask a model, nor see a hidden test.
"""

from suture.checks.trust.assessing import Assessed, Assessment, assess, assess_checks, given_checks
from suture.checks.trust.matrix import CandidateRow, MatrixLimits, run_matrix
from suture.checks.trust.prefilter import Removed, Sifted, sift
from suture.checks.trust.scoring import Signs

__all__ = [
    "Assessed",
    "Assessment",
    "CandidateRow",
    "MatrixLimits",
    "Removed",
    "Sifted",
    "Signs",
    "assess",
    "assess_checks",
    "given_checks",
    "run_matrix",
    "sift",
]
