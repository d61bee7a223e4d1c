"""What tokens cost: data, never code. The user's own go before those of `genai-prices`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from suture.core.safe_files import parse_toml, read_text_file
from suture.core.settings.schema import Settings
from suture.errors import UsageError

if TYPE_CHECKING:
    from genai_prices.types import TieredPrices


FREE = ("local", "ollama", "huggingface", "scripted")
"""Providers that run on machines of the user's own, so that tokens cost nothing."""
MOST_BYTES = 2**20
"""The most of a file of prices that is read."""
_SNAPSHOT = re.compile(r"-(latest|\d{4}-\d{2}-\d{2}|\d{8})$")
"""The end of a name that pins a version of a model; it costs what the model costs."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a model costs.

    Attributes:
        input: US dollars for a million tokens of prompt.
        output: US dollars for a million tokens of reply.
        checked: The day on which somebody saw it; `None` for what is free or of `genai-prices`.
        up_to_prompt_tokens: Longer prompts cost another price, which nobody wrote down; `None` for no end.
    """

    input: float
    output: float
    checked: date | None = None
    up_to_prompt_tokens: int | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars of one call.

        A prompt that is served from the provider's cache may cost less; it is counted in full.
        """
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000

    def affordable_tokens(self, money: float, prompt_tokens: int) -> int | None:
        """The most tokens of a reply to such a prompt for so many US dollars; `None` for any number."""
        if self.output == 0:
            return None
        left = money * 1_000_000 - prompt_tokens * self.input
        return max(0, int(left / self.output))


class Prices:
    """Prices by `provider:model`.

    Args:
        table: What `genai-prices` lacks: `provider:model`, exactly -> its price.
        elsewhere: A provider whose models are served at an address of the user's choice, where its own
            prices need not hold.
        own: The user's own prices; they hold anywhere.
    """

    def __init__(
        self, table: Mapping[str, Price], *, elsewhere: str = "", own: Mapping[str, Price] | None = None
    ) -> None:
        self._table = table
        self._elsewhere = elsewhere
        self._own = own or {}

    def of(self, name: str, prompt_tokens: int = 0) -> Price | None:
        """What a model costs for prompts of such a length; `None` where nobody knows."""
        provider = name.partition(":")[0]
        tables = (self._own,) if provider == self._elsewhere else (self._own, self._table)
        for table in tables:
            for known in (name, _SNAPSHOT.sub("", name)):
                price = table.get(known)
                if price is not None:
                    most = price.up_to_prompt_tokens
                    return price if most is None or prompt_tokens <= most else None
        if provider in FREE:
            return Price(input=0, output=0)
        return None if provider == self._elsewhere else published_price(name, prompt_tokens)


def published_price(name: str, prompt_tokens: int) -> Price | None:
    """What a provider asks, by the data that `genai-prices` was published with; nothing is fetched.

    Args:
        name: `provider:model`.
        prompt_tokens: The prompt's length: some ask more for long ones, of the reply's tokens too.
    """
    from genai_prices.data_snapshot import get_snapshot

    provider, _, model = name.partition(":")
    try:
        found, known = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    if found.id != provider:  # it takes any name that holds a provider's for that provider
        return None
    asked = known.get_prices(datetime.now(UTC))
    prompt, reply = _rate(asked.input_mtok, prompt_tokens), _rate(asked.output_mtok, prompt_tokens)
    if (
        prompt is None or reply is None or asked.requests_kcount is not None
    ):  # or more than tokens is paid for
        return None
    return Price(input=prompt, output=reply)


def _rate(asked: Decimal | TieredPrices | None, prompt_tokens: int) -> float | None:
    """US dollars for a million tokens; the last tier that a prompt is long enough for holds for all of it."""
    if asked is None or isinstance(asked, Decimal):
        return None if asked is None else float(asked)
    reached = [tier.price for tier in asked.tiers if prompt_tokens > tier.start]
    return float(reached[-1] if reached else asked.base)


def read_prices(settings: Settings) -> Prices:
    """The prices that hold under these settings.

    Raises:
        UsageError: `model.prices` names a file that cannot be read, or that is no such table.
    """
    shipped = (files("suture.models") / "prices.toml").read_text("utf-8")
    own: Mapping[str, Price] = {}
    path = settings.model.prices
    if path is not None:
        text = read_text_file(path, MOST_BYTES, "the prices", remedy="see model.prices")
        own = parse_prices(text, str(path))
    scheme = settings.model.name.partition(":")[0]
    return Prices(
        parse_prices(shipped, "prices.toml"),
        elsewhere=scheme if settings.model.base_url is not None and scheme not in FREE else "",
        own=own,
    )


def parse_prices(text: str, place: str) -> dict[str, Price]:
    """Read a file of prices: a table for each `provider:model`, with `input`, `output` and `checked`.

    Args:
        text: A table of prices, as TOML.
        place: Its name, for the error.

    Raises:
        UsageError: It is no such file.
    """
    try:
        tables = parse_toml(text)
    except ValueError as fault:
        raise UsageError(f"the prices {place!r} are not TOML: {fault}") from fault
    return {name: _price(name, entry, place) for name, entry in tables.items()}


def _price(name: str, entry: Any, place: str) -> Price:
    known = {"input", "output", "checked", "up_to_prompt_tokens"}
    numbers = entry.values() if isinstance(entry, dict) else ()
    wrong = (
        not isinstance(entry, dict)
        or not {"input", "output", "checked"} <= entry.keys() <= known
        or not isinstance(entry["checked"], date)
        or any(isinstance(n, int | float) and not 0 <= n < math.inf for n in numbers)
        or not all(isinstance(entry[key], int | float) for key in ("input", "output"))
    )
    if wrong:
        raise UsageError(
            f"the price of {name!r} in {place!r} is not understood",
            remedy="give input and output in US dollars per million tokens, and checked as a date",
        )
    return Price(**entry)
