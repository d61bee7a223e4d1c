"""The entrance to the core: functions that start runs, continue them, and deliver their results.

from suture import run_sync, solve
result = run_sync(solve("Write a function add(a, b) that adds two numbers. add(1, 2) == 3"))

Interfaces and benchmarks import this package. It imports none of them.
"""

from suture.api.delivery.apply import apply, undo, verify
from suture.api.delivery.rivals import apply_rival
from suture.api.heal_and_solve import heal, solve, stream
from suture.core.interruption import run_sync
from suture.api.judging import JudgeOptions, judge
from suture.api.options import HealOptions, RunOptions, WriteOptions
from suture.api.past_runs import fork_from_iteration, load_recorded_run, pending_review, replay, resume
from suture.api.self_healing_agent import SelfHealingAgent
from suture.core.ledger.kinds import Choice, DistinguishingInput, ReviewChoice
from suture.core.ledger.reading import Listener
from suture.loop.intake.write_task import example_task
from suture.loop.review.questions import Asker, Review, ReviewAnswer, Reviewer

__all__ = [
    "Asker",
    "Choice",
    "DistinguishingInput",
    "HealOptions",
    "JudgeOptions",
    "Listener",
    "Review",
    "ReviewAnswer",
    "ReviewChoice",
    "Reviewer",
    "RunOptions",
    "SelfHealingAgent",
    "WriteOptions",
    "apply",
    "apply_rival",
    "example_task",
    "fork_from_iteration",
    "heal",
    "judge",
    "load_recorded_run",
    "pending_review",
    "replay",
    "resume",
    "run_sync",
    "solve",
    "stream",
    "undo",
    "verify",
]
