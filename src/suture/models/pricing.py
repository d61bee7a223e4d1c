"""Prices of tokens. The user's own prices take precedence over those of `genai-prices`."""

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


FREE_PROVIDERS = ("local", "ollama", "huggingface", "scripted")
"""Providers that run on the user's own machines, so that tokens cost nothing."""
MAX_PRICE_FILE_BYTES = 2**20
"""Limit of a price file, so that a wrong path does not fill the memory."""
_SNAPSHOT = re.compile(r"-(latest|\d{4}-\d{2}-\d{2}|\d{8})$")
"""The suffix that pins a snapshot of a model; a snapshot costs what the model costs."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """The price of a model.

    Attributes:
        input: US dollars per million prompt tokens.
        output: US dollars per million reply tokens.
        checked: The day on which somebody looked the price up; `None` for free models and for `genai-prices`.
        up_to_prompt_tokens: Longer prompts have another, unknown price; `None` for no limit.
    """

    input: float
    output: float
    checked: date | None = None
    up_to_prompt_tokens: int | None = None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the US dollars of one call.

        Prompt tokens from the provider's cache may be cheaper; they are charged in full here.
        """
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000

    def affordable_tokens(self, money: float, prompt_tokens: int) -> int | None:
        """Return how many reply tokens `money` US dollars buy beyond the prompt; `None` for any number."""
        if self.output == 0:
            return None
        left = money * 1_000_000 - prompt_tokens * self.input
        return max(0, int(left / self.output))


class PriceTable:
    """Prices by `provider:model`.

    Args:
        table: Prices that `genai-prices` lacks: exact `provider:model` -> price.
        custom_address_provider: A provider whose models are served at an address of the user's choice, where
            its published prices need not apply.
        own: The user's own prices; they always apply.
    """

    def __init__(
        self,
        table: Mapping[str, Price],
        *,
        custom_address_provider: str = "",
        own: Mapping[str, Price] | None = None,
    ) -> None:
        self._table = table
        self._elsewhere = custom_address_provider
        self._own = own or {}

    def find(self, name: str, prompt_tokens: int = 0) -> Price | None:
        """Return a model's price for a prompt of this length, or `None` if it is unknown."""
        provider = name.partition(":")[0]
        tables = (self._own,) if provider == self._elsewhere else (self._own, self._table)
        for table in tables:
            for known in (name, _SNAPSHOT.sub("", name)):
                price = table.get(known)
                if price is not None:
                    most = price.up_to_prompt_tokens
                    return price if most is None or prompt_tokens <= most else None
        if provider in FREE_PROVIDERS:
            return Price(input=0, output=0)
        return None if provider == self._elsewhere else published_price(name, prompt_tokens)


def published_price(name: str, prompt_tokens: int) -> Price | None:
    """Return the provider's price in the data that ships with `genai-prices`; nothing is downloaded.

    Args:
        name: `provider:model`.
        prompt_tokens: Length of the prompt: some providers charge more for long ones, also for the reply's
            tokens.
    """
    from genai_prices.data_snapshot import get_snapshot

    provider, _, model = name.partition(":")
    try:
        found, known = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    if found.id != provider:  # it also matches names that merely contain a provider's name
        return None
    asked = known.get_prices(datetime.now(UTC))
    prompt, reply = _rate(asked.input_mtok, prompt_tokens), _rate(asked.output_mtok, prompt_tokens)
    if (
        prompt is None or reply is None or asked.requests_kcount is not None
    ):  # the price is unknown, or is not only per token
        return None
    return Price(input=prompt, output=reply)


def _rate(asked: Decimal | TieredPrices | None, prompt_tokens: int) -> float | None:
    """Return US dollars per million tokens; the highest tier that the prompt reaches applies to all."""
    if asked is None or isinstance(asked, Decimal):
        return None if asked is None else float(asked)
    reached = [tier.price for tier in asked.tiers if prompt_tokens > tier.start]
    return float(reached[-1] if reached else asked.base)


def load_prices(settings: Settings) -> PriceTable:
    """Return the prices that apply under these settings.

    Raises:
        UsageError: The file that `model.prices` names cannot be read or is not a price table.
    """
    shipped = (files("suture.models") / "prices.toml").read_text("utf-8")
    own: Mapping[str, Price] = {}
    path = settings.model.prices
    if path is not None:
        text = read_text_file(path, MAX_PRICE_FILE_BYTES, "the prices", remedy="see model.prices")
        own = parse_prices(text, str(path))
    scheme = settings.model.name.partition(":")[0]
    return PriceTable(
        parse_prices(shipped, "prices.toml"),
        custom_address_provider=scheme
        if settings.model.base_url is not None and scheme not in FREE_PROVIDERS
        else "",
        own=own,
    )


def parse_prices(text: str, place: str) -> dict[str, Price]:
    """Parse a price file: one table per `provider:model` with `input`, `output` and `checked`.

    Args:
        text: The file's TOML text.
        place: The file's name, for errors.

    Raises:
        UsageError: The text is not such a table.
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
