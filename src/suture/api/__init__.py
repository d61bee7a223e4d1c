"""The entrance to the core: functions that start runs, continue them, and deliver their results.

from suture import run_sync, solve
result = run_sync(solve("Write a function add(a, b) that adds two numbers. add(1, 2) == 3"))

Interfaces and benchmarks import this package. It imports none of them.

Each name here is loaded when it is first used, so that a command imports only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suture.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from suture.api.delivery.apply import apply, undo, verify
    from suture.api.delivery.rivals import apply_rival
    from suture.api.heal_and_solve import heal, solve, stream
    from suture.api.judging import JudgeOptions, judge
    from suture.api.options import HealOptions, RunOptions, WriteOptions
    from suture.api.past_runs import fork_from_iteration, load_recorded_run, pending_review, replay, resume
    from suture.api.self_healing_agent import SelfHealingAgent
    from suture.core.interruption import run_sync
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

__getattr__ = lazy_exports(
    __name__,
    {
        "Asker": "suture.loop.review.questions",
        "Choice": "suture.core.ledger.kinds",
        "DistinguishingInput": "suture.core.ledger.kinds",
        "HealOptions": "suture.api.options",
        "JudgeOptions": "suture.api.judging",
        "Listener": "suture.core.ledger.reading",
        "Review": "suture.loop.review.questions",
        "ReviewAnswer": "suture.loop.review.questions",
        "ReviewChoice": "suture.core.ledger.kinds",
        "Reviewer": "suture.loop.review.questions",
        "RunOptions": "suture.api.options",
        "SelfHealingAgent": "suture.api.self_healing_agent",
        "WriteOptions": "suture.api.options",
        "apply": "suture.api.delivery.apply",
        "apply_rival": "suture.api.delivery.rivals",
        "example_task": "suture.loop.intake.write_task",
        "fork_from_iteration": "suture.api.past_runs",
        "heal": "suture.api.heal_and_solve",
        "judge": "suture.api.judging",
        "load_recorded_run": "suture.api.past_runs",
        "pending_review": "suture.api.past_runs",
        "replay": "suture.api.past_runs",
        "resume": "suture.api.past_runs",
        "run_sync": "suture.core.interruption",
        "solve": "suture.api.heal_and_solve",
        "stream": "suture.api.heal_and_solve",
        "undo": "suture.api.delivery.apply",
        "verify": "suture.api.delivery.apply",
    },
)
