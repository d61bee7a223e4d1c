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
        cached_input: US dollars per million prompt tokens that the provider took from its cache; `None` if
            unknown, and then they are charged in full.
        cache_write: US dollars per million prompt tokens that the provider put into its cache; `None` if that
            costs nothing extra.
        checked: The day on which the price was last checked; `None` for free models and for `genai-prices`.
        up_to_prompt_tokens: Prompts above this length have a different, unknown price; `None` for no limit.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    checked: date | None = None
    up_to_prompt_tokens: int | None = None

    def cost(
        self,
        prompt_tokens: int,
        completion_tokens: int,
        *,
        cached_tokens: int = 0,
        cache_write_tokens: int = 0,
    ) -> float:
        """Return the US dollars of one call.

        Args:
            prompt_tokens: All tokens of the prompt, those of the cache among them.
            completion_tokens: Tokens of the reply.
            cached_tokens: Prompt tokens that the provider took from its cache.
            cache_write_tokens: Prompt tokens that the provider put into its cache.
        """
        read_rate = self.input if self.cached_input is None else self.cached_input
        write_rate = self.input if self.cache_write is None else self.cache_write
        full_tokens = prompt_tokens - cached_tokens - cache_write_tokens
        prompt_cost = full_tokens * self.input + cached_tokens * read_rate + cache_write_tokens * write_rate
        return (prompt_cost + completion_tokens * self.output) / 1_000_000

    def max_cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the US dollars that one call may cost at most: all of its prompt may be put into the cache."""
        return self.cost(prompt_tokens, completion_tokens, cache_write_tokens=prompt_tokens)

    def affordable_tokens(self, money: float, prompt_tokens: int) -> int | None:
        """Return how many reply tokens `money` US dollars buy beyond the prompt; `None` for any number."""
        if self.output == 0:
            return None
        money_for_reply = (money - self.max_cost(prompt_tokens, 0)) * 1_000_000
        return max(0, int(money_for_reply / self.output))


class PriceTable:
    """Prices by `provider:model`.

    Args:
        shipped: Prices that `genai-prices` lacks: exact `provider:model` -> price.
        custom_address_provider: A provider whose models are served at an address of the user's choice, where
            its published prices need not apply.
        custom_address_models: Models of which the same holds, as `provider:model`.
        user_prices: The user's own prices; they always apply.
    """

    def __init__(
        self,
        shipped: Mapping[str, Price],
        *,
        custom_address_provider: str = "",
        custom_address_models: frozenset[str] = frozenset(),
        user_prices: Mapping[str, Price] | None = None,
    ) -> None:
        self._shipped = shipped
        self._custom_address_provider = custom_address_provider
        self._custom_address_models = custom_address_models
        self._user_prices = user_prices or {}

    def find(self, name: str, prompt_tokens: int = 0) -> Price | None:
        """Return a model's price for a prompt of this length, or `None` if it is unknown."""
        provider = name.partition(":")[0]
        has_custom_address = provider == self._custom_address_provider or name in self._custom_address_models
        for table in (self._user_prices,) if has_custom_address else (self._user_prices, self._shipped):
            for model_name in (name, _SNAPSHOT.sub("", name)):
                price = table.get(model_name)
                if price is not None:
                    limit = price.up_to_prompt_tokens
                    return price if limit is None or prompt_tokens <= limit else None
        if provider in FREE_PROVIDERS:
            return Price(input=0, output=0)
        return None if has_custom_address else published_price(name, prompt_tokens)


def published_price(name: str, prompt_tokens: int) -> Price | None:
    """Return the price of `provider:model` in the data that ships with `genai-prices`.

    Nothing is downloaded. Some providers charge more for long prompts, also for the reply's tokens.
    """
    from genai_prices.data_snapshot import get_snapshot

    provider_name, _, model_name = name.partition(":")
    try:
        provider, model = get_snapshot().find_provider_model(model_name, None, provider_name, None)
    except LookupError:
        return None
    if provider.id != provider_name:  # it also matches names that merely contain a provider's name
        return None
    prices = model.get_prices(datetime.now(UTC))
    prompt_rate, reply_rate = (
        _rate(prices.input_mtok, prompt_tokens),
        _rate(prices.output_mtok, prompt_tokens),
    )
    charges_per_request = prices.requests_kcount is not None
    if prompt_rate is None or reply_rate is None or charges_per_request:
        return None
    return Price(
        input=prompt_rate,
        output=reply_rate,
        cached_input=_rate(prices.cache_read_mtok, prompt_tokens),
        cache_write=_rate(prices.cache_write_mtok, prompt_tokens),
    )


def _rate(price: Decimal | TieredPrices | None, prompt_tokens: int) -> float | None:
    """Return US dollars per million tokens; the highest tier that the prompt reaches applies to all."""
    if price is None or isinstance(price, Decimal):
        return None if price is None else float(price)
    tier_prices = [tier.price for tier in price.tiers if prompt_tokens > tier.start]
    return float(tier_prices[-1] if tier_prices else price.base)


def load_prices(settings: Settings) -> PriceTable:
    """Return the prices that apply under these settings; refuse a file in `model.prices` that is not a price table."""
    shipped = (files("suture.models") / "prices.toml").read_text("utf-8")
    user_prices: Mapping[str, Price] = {}
    path = settings.model.prices
    if path is not None:
        text = read_text_file(path, MAX_PRICE_FILE_BYTES, "the prices", remedy="see model.prices")
        user_prices = parse_prices(text, str(path))
    provider = settings.model.name.partition(":")[0]
    has_custom_address = settings.model.base_url is not None and provider not in FREE_PROVIDERS
    roles = [field for field in type(settings.models).model_fields if field.endswith("_base_url")]
    role_models = frozenset(
        getattr(settings.models, field.removesuffix("_base_url")) or settings.model.name
        for field in roles
        if getattr(settings.models, field) is not None
    )
    return PriceTable(
        parse_prices(shipped, "prices.toml"),
        custom_address_models=role_models,
        custom_address_provider=provider if has_custom_address else "",
        user_prices=user_prices,
    )


def parse_prices(text: str, file_name: str) -> dict[str, Price]:
    """Parse a price file in TOML: one table per `provider:model` with `input`, `output` and `checked`."""
    try:
        tables = parse_toml(text)
    except ValueError as fault:
        raise UsageError(f"the prices {file_name!r} are not TOML: {fault}") from fault
    for name, entry in tables.items():
        if not _is_price_entry(entry):
            raise UsageError(
                f"the price of {name!r} in {file_name!r} is not understood",
                remedy="give input, output and perhaps cached_input and cache_write in US dollars per million "
                "tokens, and checked as a date",
            )
    return {name: Price(**entry) for name, entry in tables.items()}


def _is_price_entry(entry: Any) -> bool:
    required = {"input", "output", "checked"}
    return (
        isinstance(entry, dict)
        and required <= entry.keys() <= required | {"cached_input", "cache_write", "up_to_prompt_tokens"}
        and isinstance(entry["checked"], date)
        and all(isinstance(value, int | float) for key, value in entry.items() if key != "checked")
        and all(0 <= value < math.inf for value in entry.values() if isinstance(value, int | float))
    )
