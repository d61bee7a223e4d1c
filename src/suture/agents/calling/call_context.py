"""`CallContext`: the models of a run, its budget and its ledger, which every model call needs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

from suture.agents.prompting.prompt_files import PromptBook
from suture.core.ledger import Budget, Event, Ledger, RunFolder
from suture.core.settings import Settings
from suture.models import RoleModels


@dataclass(frozen=True, kw_only=True, eq=False)
class CallContext:
    """The models of a run, and where their calls are paid and recorded.

    Attributes:
        folder: The run folder; it holds every reply.
        budget: What the run may use, and has used.
        replayed_run: The id of the run that this run replays; empty if it replays none.
        replayed_events: The events of that run. What its budget granted or refused is granted or refused
            again, so that the replay makes the same decisions.
    """

    settings: Settings
    folder: RunFolder
    ledger: Ledger
    budget: Budget
    models: RoleModels
    prompts: PromptBook = field(default_factory=PromptBook)
    replayed_run: str = ""
    replayed_events: Sequence[Event] = ()
    _reply_lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def reply_turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager to hold while a branch of a round asks for its reply.

        Where reply tokens are limited, the branches of a round ask one after the other in their order,
        because the tokens that a reply may have depend on the replies before it.
        """
        return nullcontext() if self.budget.limits.completion_tokens is None else self._reply_lock
