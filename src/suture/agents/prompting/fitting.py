"""A prompt that fits: parts that may shrink do, piece by piece; the task and code that is shown never do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template

from suture.agents.prompting.prompt_files import Prompt, ShrinkRule
from suture.errors import ContextTooLong
from suture.models import Message, count_upper_bound

Count = Callable[[Sequence[Message]], Awaitable[int]]
"""How many tokens a prompt is to the model that will read it."""


@dataclass(frozen=True, kw_only=True)
class PromptPart:
    """A value that may shrink.

    Attributes:
        pieces: What it is made of; each is shown whole or not at all.
        before: Text in front of the pieces; like `after`, only where there is a piece.
        after: Text that stands behind the pieces.
        joint: Stands between two pieces.
    """

    pieces: Sequence[str]
    before: str = ""
    after: str = ""
    joint: str = "\n"

    def shown(self, rule: ShrinkRule, count: int) -> str:
        """The part with so many of its pieces, and a line that says how many are missing."""
        if not self.pieces or count == 0:
            return ""
        left = len(self.pieces) - count
        gap = [Template(rule.cut).substitute(cut=left)] if left else []
        head = {"first": count, "last": 0, "ends": (count + 1) // 2}[rule.keep]
        tail = count - head
        kept = [*self.pieces[:head], *gap, *(self.pieces[-tail:] if tail else ())]
        return self.before + self.joint.join(kept) + self.after

    def most(self, rule: ShrinkRule) -> int:
        """How many pieces are shown where room is no matter."""
        count = len(self.pieces) if rule.most is None else min(len(self.pieces), rule.most)
        limit = rule.most_chars
        if limit is None or len(self.shown(rule, count)) <= limit:
            return count
        fitting = bisect_left(range(1, count), True, key=lambda n: len(self.shown(rule, n)) > limit)
        return max(min(rule.least, count), fitting)


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """How a reply is begun for a model that goes on from there, and where it has said what is wanted.

    Attributes:
        text: The first words of the reply.
        stop: Texts before which the reply ends.
    """

    text: str
    stop: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A prompt that is not yet cut to size.

    Attributes:
        prompt: Where the templates come from.
        template: The template of the user's turn; the system's turn is `system`.
        texts: Variables that stay as they are.
        parts: Variables that may shrink.
        beginning: Of the reply; `None` where the model is to begin it.
    """

    prompt: Prompt
    template: str
    texts: Mapping[str, str]
    parts: Mapping[str, PromptPart] = field(default_factory=dict)
    beginning: Beginning | None = None

    @property
    def rules(self) -> Mapping[str, ShrinkRule]:
        """How the parts shrink, in the order in which they are to."""
        return self.prompt.templates[self.template].shrink

    def full(self) -> dict[str, int]:
        """How many pieces of each part are shown where room is no matter."""
        return {name: self.parts[name].most(rule) for name, rule in self.rules.items() if name in self.parts}

    def messages(self, kept: Mapping[str, int]) -> tuple[Message, ...]:
        """The prompt with so many pieces of each part."""
        shown = {name: part.shown(self.rules[name], kept[name]) for name, part in self.parts.items()}
        text = self.prompt.render(self.template, **self.texts, **shown)
        system = Message(role="system", content=self.prompt.render("system"))
        return system, Message(role="user", content=text)


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A prompt that fits.

    Attributes:
        messages: The prompt as it is sent, oldest message first.
        kept: How many pieces of each part are shown.
        cut: How many are not, of those parts that had to shrink for want of room.
    """

    messages: tuple[Message, ...]
    kept: Mapping[str, int]
    cut: Mapping[str, int] = field(default_factory=dict)


async def fit(draft: Draft, room_tokens: int | None, count: Count) -> Fitted:
    """Shrink a prompt until it fits, part by part in the order of the prompt file, each as little as needed.

    Args:
        draft: The prompt, with the parts that may shrink.
        room_tokens: The most tokens it may be; `None` where nobody knows.
        count: Counts as the model does. It is not asked where the bytes alone say that the prompt fits.

    Raises:
        ContextTooLong: It does not fit even with every part at its smallest.
    """
    full = draft.full()
    messages = draft.messages(full)
    if room_tokens is None or count_upper_bound(messages) <= room_tokens:
        return Fitted(messages=messages, kept=full)
    tokens = await count(messages)
    kept = dict(full)
    for name in full:
        if tokens <= room_tokens:
            break
        kept[name] = await _as_many_as_fit(draft, name, kept, room_tokens, count)
        tokens = await count(draft.messages(kept))
    if tokens > room_tokens:
        raise ContextTooLong(
            f"the prompt is {tokens} tokens even at its smallest, and there is room for {room_tokens}",
            remedy="raise model.context_tokens, lower model.max_tokens, or give less to read",
        )
    cut = {name: full[name] - number for name, number in kept.items() if number < full[name]}
    return Fitted(messages=draft.messages(kept), kept=kept, cut=cut)


async def _as_many_as_fit(
    draft: Draft, name: str, kept: Mapping[str, int], room_tokens: int, count: Count
) -> int:
    """The most pieces of one part with which the prompt fits; the least that may be shown where none do."""
    least = min(draft.rules[name].least, kept[name])
    low, high = (
        least,
        kept[name],
    )  # `high` does not fit; whether `low` does is unknown only when it is `least`
    while high - low > 1:
        middle = (low + high) // 2
        if await count(draft.messages({**kept, name: middle})) <= room_tokens:
            low = middle
        else:
            high = middle
    return low
