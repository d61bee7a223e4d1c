"""What is set aside for acts that cost something, and what they came to."""

from __future__ import annotations

from suture.core.ledger.event import Payload


class BudgetReserved(Payload, kind="budget.reserved", counted=True):
    """The most that an act can cost is set aside, before it starts. Its `seq` names the reservation.

    Attributes:
        what: The act, for people.
        attempts: Attempts that it uses.
        tokens: An upper bound of its tokens, prompt and reply together.
        completion_tokens: Of these, an upper bound of those of the reply.
        money: An upper bound of the US dollars.
        role: Who acts, where it is a role.
        move: The kind of move that it belongs to, where it does.
        act: Tells it from whatever else the same branch of a round pays for.
        most: Tokens that its reply may have.
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
    """A reservation is replaced by what the act really cost; all zeros where it did not happen.

    Attributes:
        reservation: The `seq` of its event.
        attempts: Attempts that are spent.
        prompt_tokens: Tokens of prompts.
        completion_tokens: Tokens of replies.
        model_calls: Calls that were answered.
        money: US dollars.
        unpriced_calls: Calls of models whose price nobody knows.
    """

    reservation: int
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    model_calls: int
    money: float = 0.0
    unpriced_calls: int = 0


class BudgetRefused(Payload, kind="budget.refused"):
    """An act is not paid for.

    Attributes:
        what: The act, for people.
        act: Tells it from whatever else the same branch of a round pays for.
        limited: Which limit: `attempts`, `tokens`, `completion_tokens`, `money` or `seconds`.
        used: What was spent or reserved then, in the limit's unit.
        limit: The limit.
    """

    purpose: str
    act: str
    limit_kind: str
    used: float
    limit: float


class AttemptsNearLimit(Payload, kind="attempts.near_limit"):
    """The recipe's limit of attempts is near; said once.

    Attributes:
        used: Attempts that are used.
        limit: The limit; null where the recipe only warns.
    """

    used: int
    limit: int | None
