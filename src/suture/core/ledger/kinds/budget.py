"""Events of the budget: what is reserved for acts, and what they cost.

An act is anything that costs attempts, tokens or money, such as a model call.
"""

from __future__ import annotations

from suture.core.ledger.event import Payload


class BudgetReserved(Payload, kind="budget.reserved", counted=True):
    """The max cost of an act is reserved before the act starts. The event's `seq` identifies the reservation.

    Attributes:
        purpose: What the act is, in words.
        attempts: Attempts that it uses.
        tokens: Upper bound of its tokens, prompt and reply together.
        completion_tokens: Upper bound of the reply's part of these.
        money: Upper bound of its cost in US dollars.
        role: Role that acts; empty if no role does.
        move: Kind of move that the act belongs to; empty if it belongs to none.
        act: Identifies the act among all acts of the same branch of a round.
        max_reply_tokens: Max tokens of its reply.
    """

    purpose: str = ""
    attempts: int
    tokens: int
    completion_tokens: int = 0
    money: float = 0.0
    role: str = ""
    move: str = ""
    act: str = ""
    max_reply_tokens: int = 0


class BudgetSettled(Payload, kind="budget.settled", counted=True):
    """The real cost of an act replaces its reservation; all zeros if the act did not happen.

    Attributes:
        reservation: The `seq` of the reservation.
        attempts: Attempts spent.
        prompt_tokens: Tokens of prompts.
        completion_tokens: Tokens of replies.
        model_calls: Calls that were answered.
        money: Cost in US dollars.
        unpriced_calls: Calls of models whose price is unknown.
    """

    reservation: int
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    model_calls: int
    money: float = 0.0
    unpriced_calls: int = 0


class BudgetRefused(Payload, kind="budget.refused"):
    """An act would exceed a limit, and does not happen.

    Attributes:
        purpose: What the act is, in words.
        act: Identifies the act among all acts of the same branch of a round.
        limit_kind: Which limit it is: `attempts`, `tokens`, `completion_tokens`, `money` or `seconds`.
        used: What was spent or reserved at that time, in the unit of the limit.
        limit: The value of the limit.
    """

    purpose: str
    act: str
    limit_kind: str
    used: float
    limit: float


class AttemptsNearLimit(Payload, kind="attempts.near_limit"):
    """The attempts are close to the recipe's limit. This is reported once.

    Attributes:
        used: Attempts used.
        limit: The limit; null if the recipe only warns.
    """

    used: int
    limit: int | None
