"""The models of a run by role: which model a role uses, its fallbacks and its sampling.

What a model supports is derived from its name without asking the provider, so that a replay decides alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from suture.core.settings.schema import Settings
from suture.errors import PrerequisiteError
from suture.models.auto_detection import resolve_auto_model
from suture.models.chat_model import NO_MODEL, Model
from suture.models.pricing import Price, PriceTable, load_prices
from suture.models.providers.registry import open_model_by_name, wrap_langchain_chat

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


Role = Literal[
    "coder", "planner", "tester", "critic", "reviewer", "debugger", "summariser", "optimiser", "escalate"
]
"""Who calls a model. `escalate` is the coder on a hard case with a stronger model, if one is configured."""
DEFAULT_ROLE_FOR: Mapping[Role, Role] = {"reviewer": "critic", "optimiser": "coder", "escalate": "coder"}
"""The role whose model, temperature and token limit apply to a role without settings of its own."""

PREFILL_PROVIDERS = ("local", "ollama")
"""Providers that continue a last assistant message with any model."""
PREFILL_ANTHROPIC_MODELS = re.compile(r"claude-(?:2|3|instant|(?:opus|sonnet|haiku)-4-(?:[015]\b|\d{8}))")
"""Anthropic's models up to 4.5; later ones refuse a prefilled reply."""
TOOL_CALL_PROVIDERS = ("anthropic", "openai", "qwen")
"""Providers whose own models were trained to call tools over many steps."""


@dataclass(frozen=True, kw_only=True)
class RoleModel:
    """The model of a role and its sampling.

    Attributes:
        chain: The model that is called first, then its fallbacks in order.
        temperature: Temperature of replies that are not greedy.
        max_tokens: Token limit of one reply.
    """

    chain: tuple[Model, ...]
    temperature: float
    max_tokens: int

    @property
    def model(self) -> Model:
        """Return the model that is called first."""
        return self.chain[0]


class RoleModels:
    """The models of one run.

    Args:
        roles: The model of each role in use.
        prices: The price table.
        opened: Models that `close` closes; those that the caller passed in are not among them.
        default_model_name: Name of the model for roles without one of their own.
    """

    def __init__(
        self,
        roles: Mapping[Role, RoleModel],
        prices: PriceTable,
        opened: tuple[Model, ...] = (),
        *,
        common: str = "",
    ) -> None:
        self.default_model_name = common
        self._roles = dict(roles)
        self._prices = prices
        self._opened = opened

    def for_role(self, role: Role) -> RoleModel:
        """Return the model of a role."""
        return self._roles[role]

    @property
    def escalation(self) -> RoleModel | None:
        """Return the stronger model for hard cases, or `None` if the user configured none."""
        return self._roles.get("escalate")

    def price_for(self, model: str, prompt_tokens: int = 0) -> Price | None:
        """Return a model's price for a prompt of this length, or `None` if it is unknown."""
        return self._prices.find(model, prompt_tokens)

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """Return the names of the models in use whose price is unknown."""
        names = {model.name: None for seat in self._roles.values() for model in seat.chain}
        return tuple(name for name in names if name != NO_MODEL and self.price_for(name) is None)

    def require_prices(self) -> None:
        """Refuse a budget of money if a price is unknown, because the budget could not be enforced.

        Raises:
            PrerequisiteError: The price of a model in use is unknown.
        """
        if self.unpriced_models:
            names = ", ".join(map(repr, self.unpriced_models))
            raise PrerequisiteError(
                f"the price of {names} is unknown, so budget.money cannot be enforced",
                remedy="give one in a file named by model.prices, or leave out budget.money",
            )

    def with_wrapped_models(self, wrap: Callable[[Model], Model]) -> RoleModels:
        """Return a copy in which `wrap` was applied once to each distinct model."""
        known: dict[int, Model] = {}

        def once(model: Model) -> Model:
            return known.setdefault(id(model), wrap(model))

        roles: dict[Role, RoleModel] = {
            role: RoleModel(
                chain=tuple(once(model) for model in seat.chain),
                temperature=seat.temperature,
                max_tokens=seat.max_tokens,
            )
            for role, seat in self._roles.items()
        }
        return RoleModels(roles, self._prices, self._opened, common=self.default_model_name)

    async def close(self) -> None:
        """Close the models that were opened for this run; safe to call twice."""
        for model in self._opened:
            await model.close()


def open_model(settings: Settings, given: str | BaseChatModel | Model | None = None) -> Model:
    """Return the model that the settings name, or the given one. Nothing is loaded or called yet.

    Args:
        settings: `model.name` names the model unless `given` does.
        given: `provider:model`, a LangChain chat model, or a `Model`, which is returned as it is.

    Raises:
        PrerequisiteError: A key, an extra or the weights are missing.
        UsageError: The name is not a model name.
    """
    if isinstance(given, Model):
        return given
    if given is not None and not isinstance(given, str):
        return wrap_langchain_chat(settings, given)
    settings = resolve_auto_model(settings, given)
    return open_model_by_name(settings, settings.model.name)


def open_role_models(
    settings: Settings,
    given: str | BaseChatModel | Model | None = None,
    *,
    opener: Callable[[Settings, str], Model] = open_model_by_name,
    in_use: Sequence[Role] = ("coder",),
) -> RoleModels:
    """Open the models of the roles in use. Nothing is loaded or called yet.

    The settings of other roles need no key and no price. `escalate` is in use if `models.escalate` is set.

    Args:
        settings: `model.*` applies to all roles, `models.*` to each one.
        given: Replaces `model.name`, as for `open_model`.
        opener: Opens a model by its name.
        in_use: The roles that may call a model.

    Raises:
        PrerequisiteError: A key, an extra or the weights of a named model are missing.
        UsageError: A name is not a model name, or the price file cannot be read.
    """
    if given is None or isinstance(given, str):
        settings = resolve_auto_model(settings, given)
        given = None
    common = opener(settings, settings.model.name) if given is None else open_model(settings, given)
    known = {settings.model.name: common} if given is None else {}

    def named(name: str) -> Model:
        if name not in known:
            known[name] = opener(settings, name)
        return known[name]

    fallbacks = tuple(named(name) for name in settings.model.fallbacks)
    roles: dict[Role, RoleModel] = {}
    for role in (*in_use, "escalate") if settings.models.escalate else in_use:
        own = _role_setting(settings, role, "")
        first = named(own) if own else common
        temperature = _role_setting(settings, role, "_temperature")
        roles[role] = RoleModel(
            chain=(first, *(model for model in fallbacks if model is not first)),
            temperature=settings.model.temperature if temperature is None else temperature,
            max_tokens=_role_setting(settings, role, "_max_tokens") or settings.model.max_tokens,
        )
    opened = {id(model): model for model in (*known.values(), common) if model is not given}
    return RoleModels(roles, load_prices(settings), tuple(opened.values()), common=common.name)


def _role_setting(settings: Settings, role: Role, what: str) -> Any:
    """Return a role's own setting, else that of its default role; `None` if neither is set."""
    own = getattr(settings.models, role + what)
    return (
        _role_setting(settings, DEFAULT_ROLE_FOR[role], what)
        if own is None and role in DEFAULT_ROLE_FOR
        else own
    )


def supports_prefill(name: str, settings: Settings) -> bool:
    """Return whether a model can continue a reply that we begin, and stop at texts of ours.

    Args:
        name: `provider:model`.
        settings: `model.prefill` overrides the rule, for servers that only the user knows.
    """
    if settings.model.prefill is not None:
        return settings.model.prefill
    provider, _, model = name.partition(":")
    if provider == "anthropic":
        return PREFILL_ANTHROPIC_MODELS.match(model) is not None
    return provider in PREFILL_PROVIDERS


def supports_tool_calls(name: str, settings: Settings) -> bool:
    """Return whether a model works with tools through its provider's protocol.

    Args:
        name: `provider:model`.
        settings: `model.tools` overrides the rule. A server at the user's own address may run any model, so
            without the setting it counts as one that does not.
    """
    if settings.model.tools is not None:
        return settings.model.tools
    return name.partition(":")[0] in TOOL_CALL_PROVIDERS and settings.model.base_url is None
