"""Judge a change that anybody made: the flow of a run without a proposal, and without a model.

The tests run on the code without and with the change. What the change does to the tests is read from their sources,
and weighed by running the old tests on the new code. Nothing in this package reads a repository or a setting file.
"""

from suture.loop.judgement.base_results import ProposedChange, find_recorded_runs
from suture.loop.judgement.judge_change import judge_change
from suture.loop.judgement.judgement_evidence import certify_judgement, refuse_published_secrets
from suture.loop.judgement.judgement_replay import replay_judgement
from suture.loop.judgement.test_runs import JudgeTools

__all__ = [
    "JudgeTools",
    "ProposedChange",
    "certify_judgement",
    "find_recorded_runs",
    "judge_change",
    "refuse_published_secrets",
    "replay_judgement",
]
