"""The models of a run by role: which model a role uses, its fallbacks and its sampling.

The model name `auto` stands for the first model that this machine can use free of charge.

The order is:

1. The embedded model if its weights are here: the default one first, then the others of the catalogue.
2. A model of an Ollama server that answers at its address: one for code first, then the first in its list.
3. The embedded default in any case; opening it explains how to download its weights.

A key in the environment does not count, because it does not mean that the user wants to send code to a provider or to
spend money. The provider of such a key is used only when it is named.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import SecretStr

from suture.core.installation import format_install_command
from suture.core.settings.schema import ProfileSettings, Settings
from suture.errors import PrerequisiteError, UsageError
from suture.models.chat_model import NO_MODEL, Model
from suture.models.pricing import Price, PriceTable, load_prices
from suture.models.profiles import find_profile
from suture.models.profiles.model_profile import override_context_tokens
from suture.models.providers.connections import mask_credentials
from suture.models.providers.endpoints import list_ollama_models
from suture.models.providers.langchain_model import LangChainModel
from suture.models.providers.registry import PROVIDERS, open_model_by_name, wrap_langchain_chat
from suture.models.weights.weights_cache import CATALOGUE, list_catalogue_models

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


Role = Literal["coder", "planner", "tester", "critic", "debugger", "summariser", "optimiser", "escalate"]
"""Who calls a model. `escalate` is the coder on a hard case with a stronger model, if one is configured."""
DEFAULT_ROLE_FOR: Mapping[Role, Role] = {"optimiser": "coder", "escalate": "coder"}
"""The role whose model, temperature and token limit apply to a role without its own settings."""


@dataclass(frozen=True, kw_only=True)
class RoleServer:
    """Where a role's own model is served, if not at its provider's usual address.

    Attributes:
        base_url: Address of the server; `None` for that of the provider, or of `model.base_url`.
        key: Its key; `None` for that of the provider.
    """

    base_url: str | None = None
    key: SecretStr | None = None


PROVIDERS_SERVER = RoleServer()
"""The server of a role that names none."""


@dataclass(frozen=True, kw_only=True)
class RoleModel:
    """The model of a role and its sampling.

    Attributes:
        chain: The model that is called first, then its fallbacks in order.
        temperature: Temperature of replies that are not greedy.
        max_tokens: Token limit of one answer, thinking not included.
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
        opened: Models that `close` closes; those that the caller passed in are not among them.
        default_model_name: Name of the model for roles without one of their own.
    """

    def __init__(
        self,
        roles: Mapping[Role, RoleModel],
        prices: PriceTable,
        opened: tuple[Model, ...] = (),
        *,
        default_model_name: str = "",
    ) -> None:
        self.default_model_name = default_model_name
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
        names = {model.name: None for role_model in self._roles.values() for model in role_model.chain}
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
        models = {id(model): model for role_model in self._roles.values() for model in role_model.chain}
        wrapped = {key: wrap(model) for key, model in models.items()}
        roles = {
            role: replace(role_model, chain=tuple(wrapped[id(model)] for model in role_model.chain))
            for role, role_model in self._roles.items()
        }
        return RoleModels(roles, self._prices, self._opened, default_model_name=self.default_model_name)

    def apply_served_contexts(self, settings: Settings) -> Settings:
        """Return the settings with the context sizes that Ollama's server gave when its models were opened.

        They are recorded with the run, so that a replay, which asks no server, shortens its prompts alike.
        """
        for role_model in self._roles.values():
            settings = apply_served_contexts(settings, role_model.chain)
        return settings

    async def close(self) -> None:
        """Close the models that were opened for this run; safe to call twice."""
        for model in self._opened:
            await model.close()


def open_model(settings: Settings, model: str | BaseChatModel | Model | None = None) -> Model:
    """Return the model that the settings name, or the given one. Nothing is loaded or called yet.

    Args:
        settings: `model.name` names the model unless `model` does.
        model: `provider:model`, a LangChain chat model, or a `Model`, which is returned as it is.

    Raises:
        PrerequisiteError: A key, an extra or the weights are missing.
        UsageError: The name is not a model name.
    """
    if isinstance(model, Model):
        return model
    if model is not None and not isinstance(model, str):
        return wrap_langchain_chat(settings, model)
    settings = resolve_auto_model(settings, model)
    return open_model_by_name(settings, settings.model.name)


def open_role_models(
    settings: Settings,
    model: str | BaseChatModel | Model | None = None,
    *,
    opener: Callable[[Settings, str], Model] = open_model_by_name,
    in_use: Sequence[Role] = ("coder",),
) -> RoleModels:
    """Open the models of the roles in use. Nothing is loaded or called yet.

    The settings of other roles need no key and no price. `escalate` is in use if `models.escalate` is set.

    Args:
        settings: `model.*` applies to all roles, `models.*` to each one.
        model: Replaces `model.name`, as for `open_model`.
        in_use: The roles that may call a model.

    Raises:
        PrerequisiteError: A key, an extra or the weights of a named model are missing.
        UsageError: A name is not a model name, or the price file cannot be read.
    """
    opened_models: dict[tuple[str, str | None, SecretStr | None], Model] = {}

    def open_named(name: str, server: RoleServer = PROVIDERS_SERVER) -> Model:
        key = (name, server.base_url, server.key)
        if key not in opened_models:
            opened_models[key] = opener(_settings_for_server(settings, name, server), name)
        return opened_models[key]

    if model is None or isinstance(model, str):
        settings = resolve_auto_model(settings, model)
        default_model = open_named(settings.model.name)
    else:
        default_model = open_model(settings, model)
    fallbacks = tuple(open_named(name) for name in settings.model.fallbacks)
    roles: dict[Role, RoleModel] = {}
    for role in (*in_use, "escalate") if settings.models.escalate else in_use:
        role_model_name, server = _role_model_and_server(settings, role)
        if role_model_name or server != PROVIDERS_SERVER:
            role_model = open_named(role_model_name or default_model.name, server)
        else:
            role_model = default_model
        temperature = _role_setting(settings, role, "_temperature")
        roles[role] = RoleModel(
            chain=(role_model, *(fallback for fallback in fallbacks if fallback is not role_model)),
            temperature=settings.model.temperature if temperature is None else temperature,
            max_tokens=_role_setting(settings, role, "_max_tokens")
            or settings.model.max_tokens
            or find_profile(role_model.name, apply_served_contexts(settings, [role_model])).answer_tokens,
        )
    opened = {id(each): each for each in (*opened_models.values(), default_model) if each is not model}
    return RoleModels(
        roles, load_prices(settings), tuple(opened.values()), default_model_name=default_model.name
    )


def apply_served_contexts(settings: Settings, models: Sequence[Model]) -> Settings:
    """Return the settings with the context sizes that Ollama's server gave when these models were opened."""
    for model in models:
        if isinstance(model, LangChainModel) and model.name.startswith("ollama:"):
            assert model.profile.context_tokens is not None
            settings = override_context_tokens(settings, model.name, model.profile.context_tokens)
    return settings


def _role_model_and_server(settings: Settings, role: Role) -> tuple[str | None, RoleServer]:
    """Return the name of a role's own model, and its server. A role without both uses those of its default role."""
    name = getattr(settings.models, role)
    server = RoleServer(
        base_url=getattr(settings.models, f"{role}_base_url"), key=getattr(settings.models, f"{role}_key")
    )
    if name is None and server == PROVIDERS_SERVER and role in DEFAULT_ROLE_FOR:
        return _role_model_and_server(settings, DEFAULT_ROLE_FOR[role])
    return name, server


def _settings_for_server(settings: Settings, name: str, server: RoleServer) -> Settings:
    """Return the settings with which a model is opened at a role's own server.

    Raises:
        UsageError: The role has a key, and its provider takes none.
    """
    if server == PROVIDERS_SERVER:
        return settings
    provider = name.partition(":")[0]
    update: dict[str, Any] = {}
    if server.base_url is not None:
        update["model"] = settings.model.model_copy(update={"name": name, "base_url": server.base_url})
    if server.key is not None:
        if provider not in type(settings.keys).model_fields:
            raise UsageError(
                f"{name!r} takes no key of its own", remedy="unset the key of this role (models.ROLE_key)"
            )
        update["keys"] = settings.keys.model_copy(update={provider: server.key})
    return settings.model_copy(update=update)


def _role_setting(settings: Settings, role: Role, suffix: str) -> Any:
    """Return a role's own setting, else that of its default role; `None` if neither is set."""
    value = getattr(settings.models, role + suffix)
    if value is None and role in DEFAULT_ROLE_FOR:
        return _role_setting(settings, DEFAULT_ROLE_FOR[role], suffix)
    return value


AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class DetectedModel:
    """The result of looking in one place for a model.

    Attributes:
        label: The place, for people.
        model: `provider:model` if a model was found there, else empty.
        detail: What was found, for people.
    """

    label: str
    model: str = ""
    detail: str


def choose_model(settings: Settings) -> tuple[str, str]:
    """Return the model that the settings mean, as `provider:model`, and a short reason for people."""
    name = settings.model.name
    if name != AUTO:
        return name, "as set"
    detected = next((place for place in detect_models(settings) if place.model), None)
    if detected is not None:
        return detected.model, f"found: {detected.detail}"
    is_installed = importlib.util.find_spec("xllamacpp") is not None
    remedy = "not fetched yet: `suture models pull`" if is_installed else format_install_command("local")
    return f"local:{next(iter(CATALOGUE))}", f"the default, {remedy}"


def resolve_auto_model(settings: Settings, model_name: str | None = None) -> Settings:
    """Return the settings with a concrete model name: `model_name`, or what `auto` stands for.

    `model.base_url` was written (and checked against sending a key to the wrong server) for the provider in
    `model.name`, where `auto` may become Ollama. A model of another provider does not inherit it.
    """
    name = model_name or choose_model(settings)[0]
    old_provider = settings.model.name.partition(":")[0]
    new_provider = name.partition(":")[0]
    update: dict[str, object] = {"name": name}
    if settings.model.name not in (name, AUTO, NO_MODEL):
        update["profile"] = ProfileSettings()  # it describes another model
    if new_provider != old_provider and (old_provider, new_provider) != (AUTO, "ollama"):
        update["base_url"] = None
    return settings.model_copy(update={"model": settings.model.model_copy(update=update)})


def detect_models(settings: Settings) -> Iterator[DetectedModel]:
    """Yield what each place has, in the order of `auto`; a place is inspected when its turn comes."""
    yield _detect_embedded_model(settings)
    yield _detect_ollama_model(settings)


def _detect_embedded_model(settings: Settings) -> DetectedModel:
    label = "embedded model"
    if importlib.util.find_spec("xllamacpp") is None:
        return DetectedModel(label=label, detail=f"not installed; {format_install_command('local')}")
    for cached in list_catalogue_models(settings.paths.cache):
        if cached.path is not None:
            return DetectedModel(
                label=label, model=f"local:{cached.entry.name}", detail="its weights are here"
            )
    return DetectedModel(label=label, detail=f"no weights in {settings.paths.cache}")


def _detect_ollama_model(settings: Settings) -> DetectedModel:
    label = "ollama"
    if importlib.util.find_spec("langchain_ollama") is None:
        return DetectedModel(label=label, detail=f"not installed; {format_install_command('ollama')}")
    address = settings.model.base_url or PROVIDERS["ollama"].address
    names = list_ollama_models(address)
    address = mask_credentials(address)  # from here on it is only displayed
    if names is None:
        return DetectedModel(label=label, detail=f"no server answers at {address}")
    if not names:
        return DetectedModel(label=label, detail=f"it answers at {address} and has no model")
    name = next((name for name in names if "code" in name.lower()), names[0])
    return DetectedModel(label=label, model=f"ollama:{name}", detail=f"it answers at {address}")
