"""The one door to the core: solve, heal, stream, replay, resume, fork, verify, apply, undo, and a class.

from suture import run_sync, solve
result = run_sync(solve("Write a function add(a, b) that adds two numbers. add(1, 2) == 3"))
"""

from suture.api.self_healing_agent import SelfHealingAgent
from suture.api.delivery.apply import apply, undo, verify
from suture.api.forking import fork_from_iteration
from suture.api.heal_and_solve import heal
from suture.api.past_runs import pending_review, load_recorded_run, replay, resume
from suture.api.run_lifecycle import run_sync
from suture.api.solving import solve
from suture.api.streaming import stream
from suture.core.ledger.kinds import Choice, DistinguishingInput, ReviewChoice
from suture.core.ledger.reading import Listener
from suture.loop.intake.write_task import example_task
from suture.loop.review.repair_choice import Asker
from suture.loop.review.review import Review, ReviewAnswer, Reviewer

__all__ = [
    "Asker",
    "Choice",
    "DistinguishingInput",
    "Listener",
    "Review",
    "ReviewAnswer",
    "ReviewChoice",
    "Reviewer",
    "SelfHealingAgent",
    "apply",
    "example_task",
    "fork_from_iteration",
    "heal",
    "pending_review",
    "load_recorded_run",
    "replay",
    "resume",
    "run_sync",
    "solve",
    "stream",
    "undo",
    "verify",
]
