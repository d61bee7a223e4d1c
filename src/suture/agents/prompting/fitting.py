"""Fit a prompt into a token limit: its parts lose pieces one by one, and the task always stays whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template

from suture.agents.prompting.prompt_files import Prompt, ShrinkRule
from suture.errors import ContextTooLong
from suture.models import Message, prompt_token_upper_bound

CountTokens = Callable[[Sequence[Message]], Awaitable[int]]
"""Counts the tokens of a prompt as the model that will read it does."""


@dataclass(frozen=True, kw_only=True)
class PromptPart:
    """A part of a prompt that may shrink.

    Attributes:
        pieces: The lines or blocks of the part; each is shown whole or not at all.
        before: Text in front of the pieces; like `after`, it appears only with at least one piece.
        after: Text after the pieces.
    """

    pieces: Sequence[str]
    before: str = ""
    after: str = ""
    separator: str = "\n"

    def render(self, rule: ShrinkRule, count: int) -> str:
        """Return the part with `count` of its pieces, and a line with the number of missing ones."""
        if not self.pieces or count == 0:
            return ""
        removed = len(self.pieces) - count
        gap_line = [Template(rule.cut).substitute(cut=removed)] if removed else []
        head_count = {"first": count, "last": 0, "ends": (count + 1) // 2}[rule.keep]
        tail = self.pieces[head_count + removed :]
        return self.before + self.separator.join([*self.pieces[:head_count], *gap_line, *tail]) + self.after

    def max_pieces(self, rule: ShrinkRule) -> int:
        """Return how many pieces the rule shows if there is room for all."""
        count = len(self.pieces) if rule.most is None else min(len(self.pieces), rule.most)
        limit = rule.most_chars
        if limit is None or len(self.render(rule, count)) <= limit:
            return count
        # The part gets longer with each piece. As the range starts at 1, the index of the first count that is too
        # long is the largest count that fits.
        fitting = bisect_left(range(1, count), True, key=lambda n: len(self.render(rule, n)) > limit)
        return max(min(rule.least, count), fitting)


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """The beginning of a reply, which the model continues, and the strings before which the reply ends."""

    text: str
    stop: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PromptDraft:
    """A prompt before it is fitted.

    Attributes:
        template: Name of the user message's template; the system message's is `system`.
        texts: Variables that never shrink.
        parts: Variables that may shrink.
        prefill: The beginning of the reply; `None` if the model writes all of it.
    """

    prompt: Prompt
    template: str
    texts: Mapping[str, str]
    parts: Mapping[str, PromptPart] = field(default_factory=dict)
    prefill: Prefill | None = None

    @property
    def rules(self) -> Mapping[str, ShrinkRule]:
        """Return how the parts shrink, in the order in which they do."""
        return self.prompt.templates[self.template].shrink

    def full_counts(self) -> dict[str, int]:
        """Return how many pieces of each part are shown if there is room for all."""
        return {
            name: self.parts[name].max_pieces(rule) for name, rule in self.rules.items() if name in self.parts
        }

    def messages(self, piece_counts: Mapping[str, int]) -> tuple[Message, ...]:
        """Return the messages with the given number of pieces of each part."""
        parts = {name: part.render(self.rules[name], piece_counts[name]) for name, part in self.parts.items()}
        text = self.prompt.render(self.template, **self.texts, **parts)
        system = Message(role="system", content=self.prompt.render("system"))
        return system, Message(role="user", content=text)


@dataclass(frozen=True, kw_only=True)
class FittedPrompt:
    """A prompt that fits.

    Attributes:
        piece_counts: How many pieces of each part are shown.
        removed_counts: How many pieces were removed for lack of room, for parts where any were.
    """

    messages: tuple[Message, ...]
    piece_counts: Mapping[str, int]
    removed_counts: Mapping[str, int] = field(default_factory=dict)


async def fit_prompt(draft: PromptDraft, max_tokens: int | None, count: CountTokens) -> FittedPrompt:
    """Shrink a prompt until it fits.

    The parts shrink in the order of the prompt file, each as little as necessary.

    Args:
        max_tokens: Token limit of the prompt; `None` if it is unknown.
        count: Counts tokens. It is not called if the number of bytes alone proves that the prompt fits.

    Raises:
        ContextTooLong: The prompt does not fit even with every part at its smallest.
    """
    full_counts = draft.full_counts()
    messages = draft.messages(full_counts)
    if max_tokens is None or prompt_token_upper_bound(messages) <= max_tokens:
        return FittedPrompt(messages=messages, piece_counts=full_counts)
    tokens = await count(messages)
    piece_counts = dict(full_counts)
    for name in full_counts:
        if tokens <= max_tokens:
            break
        piece_counts[name] = await _largest_fitting_count(draft, name, piece_counts, max_tokens, count)
        tokens = await count(draft.messages(piece_counts))
    if tokens > max_tokens:
        raise ContextTooLong(
            f"the prompt is {tokens} tokens even at its smallest, and there is room for {max_tokens}",
            remedy="raise model.context_tokens, lower model.max_tokens, or give less to read",
        )
    removed_counts = {
        name: full_counts[name] - shown for name, shown in piece_counts.items() if shown < full_counts[name]
    }
    return FittedPrompt(
        messages=draft.messages(piece_counts), piece_counts=piece_counts, removed_counts=removed_counts
    )


async def _largest_fitting_count(
    draft: PromptDraft, name: str, piece_counts: Mapping[str, int], max_tokens: int, count: CountTokens
) -> int:
    """Return the largest number of pieces of one part that fits; the rule's minimum if none does."""
    low = min(draft.rules[name].least, piece_counts[name])
    high = piece_counts[name]
    # `high` never fits. `low` fits, unless it is still the minimum, which was not tried.
    while high - low > 1:
        middle = (low + high) // 2
        if await count(draft.messages({**piece_counts, name: middle})) <= max_tokens:
            low = middle
        else:
            high = middle
    return low
