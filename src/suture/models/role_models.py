"""Which model each role speaks with, what stands in when it fails, how the role draws; what a model can do.

What it can do is known from its name: nobody is asked, so a replay decides alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from suture.core.settings.schema import Settings
from suture.errors import PrerequisiteError
from suture.models.auto_detection import with_chosen_model
from suture.models.chat_model import NO_MODEL, Model
from suture.models.pricing import Price, Prices, read_prices
from suture.models.providers.registry import open_given, open_named

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


Role = Literal[
    "coder", "planner", "tester", "critic", "reviewer", "debugger", "summariser", "optimiser", "escalate"
]
"""Who asks. `escalate` is the coder on a hard case, with a stronger model; only where one is named."""
SPEAKS_AS: Mapping[Role, Role] = {"reviewer": "critic", "optimiser": "coder", "escalate": "coder"}
"""Whose model, temperature and length hold for a role that has none of its own."""

BEGUN_UNASKED = ("local", "ollama")
"""Providers that go on from a last turn of the assistant's, whichever model it is."""
BEGUN_BY_ANTHROPIC = re.compile(r"claude-(?:2|3|instant|(?:opus|sonnet|haiku)-4-(?:[015]\b|\d{8}))")
"""Its models up to 4.5; later ones refuse a reply that is begun for them."""
CALL_TOOLS = ("anthropic", "openai", "qwen")
"""Providers whose own models were trained to call tools, and to work with them for many steps."""


@dataclass(frozen=True, kw_only=True)
class RoleModel:
    """The model that a role speaks with, and how it draws.

    Attributes:
        chain: Who is asked, then who is asked when that one fails, and so on; one where nobody named more.
        temperature: Of replies that are not greedy.
        max_tokens: The most tokens of one reply.
    """

    chain: tuple[Model, ...]
    temperature: float
    max_tokens: int

    @property
    def model(self) -> Model:
        """Who is asked first."""
        return self.chain[0]


class Models:
    """The models of one run.

    Args:
        roles: The model of each role that may ask.
        prices: What tokens cost, by model.
        opened: The models that `close` closes: not those that were handed in.
        common: The name of the model that speaks for roles without one of their own.
    """

    def __init__(
        self,
        roles: Mapping[Role, RoleModel],
        prices: Prices,
        opened: tuple[Model, ...] = (),
        *,
        common: str = "",
    ) -> None:
        self.common = common
        self._roles = dict(roles)
        self._prices = prices
        self._opened = opened

    def for_role(self, role: Role) -> RoleModel:
        """The model of a role."""
        return self._roles[role]

    @property
    def stronger(self) -> RoleModel | None:
        """Who takes over from the coder on a hard case; `None` where the user named nobody."""
        return self._roles.get("escalate")

    def price_of(self, model: str, prompt_tokens: int = 0) -> Price | None:
        """What a model costs for prompts of such a length; `None` where nobody knows."""
        return self._prices.of(model, prompt_tokens)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Names of the models that may be asked and whose price nobody knows."""
        names = {model.name: None for seat in self._roles.values() for model in seat.chain}
        return tuple(name for name in names if name != NO_MODEL and self.price_of(name) is None)

    def require_prices(self) -> None:
        """Refuse to work within a budget of money where a price is not known: it could not be kept.

        Raises:
            PrerequisiteError: Nobody knows the price of a model that may be asked.
        """
        if self.unpriced:
            raise PrerequisiteError(
                f"no price is known of {', '.join(map(repr, self.unpriced))}, so budget.money cannot be kept",
                remedy="give one in a file named by model.prices, or leave out budget.money",
            )

    def wrapped(self, wrap: Callable[[Model], Model]) -> Models:
        """The same with each model wrapped, once."""
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
        return Models(roles, self._prices, self._opened, common=self.common)

    async def close(self) -> None:
        """Close what was opened for this run; safe to call twice."""
        for model in self._opened:
            await model.close()


def open_model(settings: Settings, given: str | BaseChatModel | Model | None = None) -> Model:
    """The model that the settings name, or the one handed in. Nothing is loaded or called yet.

    Args:
        settings: `model.name` says which, unless `given` does.
        given: `provider:model`, a LangChain chat model, or a `Model`, which is returned as it is.

    Raises:
        PrerequisiteError: A key, an extra or the weights are missing; there is no stand-in.
        UsageError: The name means nothing.
    """
    if isinstance(given, Model):
        return given
    if given is not None and not isinstance(given, str):
        return open_given(settings, given)
    settings = with_chosen_model(settings, given)
    return open_named(settings, settings.model.name)


def open_models(
    settings: Settings,
    given: str | BaseChatModel | Model | None = None,
    *,
    opener: Callable[[Settings, str], Model] = open_named,
    in_use: Sequence[Role] = ("coder",),
) -> Models:
    """Open the models of the roles that are in use. Nothing is loaded or called yet.

    The settings of other roles need no key and no price. `escalate` asks too where `models.escalate` is set.

    Args:
        settings: `model.*` for all roles, `models.*` for each.
        given: Stands in the place of `model.name`, as for `open_model`.
        opener: Makes a model of its name.
        in_use: The roles that may ask.

    Raises:
        PrerequisiteError: A key, an extra or the weights of a named model are missing.
        UsageError: A name means nothing, or the file of prices cannot be read.
    """
    if given is None or isinstance(given, str):
        settings = with_chosen_model(settings, given)
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
        own = _own(settings, role, "")
        first = named(own) if own else common
        temperature = _own(settings, role, "_temperature")
        roles[role] = RoleModel(
            chain=(first, *(model for model in fallbacks if model is not first)),
            temperature=settings.model.temperature if temperature is None else temperature,
            max_tokens=_own(settings, role, "_max_tokens") or settings.model.max_tokens,
        )
    opened = {id(model): model for model in (*known.values(), common) if model is not given}
    return Models(roles, read_prices(settings), tuple(opened.values()), common=common.name)


def _own(settings: Settings, role: Role, what: str) -> Any:
    """A role's own setting, else that of the role which it speaks as; `None` where neither is set."""
    own = getattr(settings.models, role + what)
    return _own(settings, SPEAKS_AS[role], what) if own is None and role in SPEAKS_AS else own


def may_begin(name: str, settings: Settings) -> bool:
    """Whether a reply of a model may be begun for it (prefill), and ended by texts of ours.

    Args:
        name: `provider:model`.
        settings: `model.prefill` decides where it is set: it is for servers that only their user knows.
    """
    if settings.model.prefill is not None:
        return settings.model.prefill
    provider, _, model = name.partition(":")
    if provider == "anthropic":
        return BEGUN_BY_ANTHROPIC.match(model) is not None
    return provider in BEGUN_UNASKED


def may_call_tools(name: str, settings: Settings) -> bool:
    """Whether a model is told of tools in its provider's own way, and `adaptive` lets it work with them.

    Args:
        name: `provider:model`.
        settings: `model.tools` decides where it is set. A server at an address of the user's may hold any
            model, so it counts as one that does not.
    """
    if settings.model.tools is not None:
        return settings.model.tools
    return name.partition(":")[0] in CALL_TOOLS and settings.model.base_url is None
