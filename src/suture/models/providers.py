"""Which model a name means."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import SecretStr

from suture.errors import PrerequisiteError, UsageError
from suture.models.chat import RETRIES, Connection, LangChainModel, connect_openai
from suture.models.scripted import open_script
from suture.models.seam import Model
from suture.settings.schema import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["notice_of", "open_model"]


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider that LangChain reaches through a package of its own.

    Attributes:
        extra: The extra of ours that installs the package.
        package: The package to import.
        key: The field of `settings.keys`, where one is needed.
    """

    extra: str
    package: str
    key: Literal["anthropic"] | None = None


PROVIDERS = {
    "anthropic": Provider(extra="anthropic", package="langchain_anthropic", key="anthropic"),
    "ollama": Provider(extra="ollama", package="langchain_ollama"),
}


def notice_of(model: Model) -> str:
    """What the user must be told about a model before the run starts; empty for most."""
    return str(getattr(model, "notice", ""))


def open_model(settings: Settings, given: str | BaseChatModel | Model | None = None) -> Model:
    """The model that the settings name, or the one handed in. Nothing is loaded or called yet.

    Args:
        settings: `model.name` says which, unless `given` does.
        given: `provider:model`, a LangChain chat model, or a `Model`, which is returned as it is.

    Raises:
        PrerequisiteError: A key, an extra or the weights are missing; there is no stand-in.
        UsageError: The name means nothing.
    """
    if given is None or isinstance(given, str):
        return _open_named(settings, given or settings.model.name)
    if isinstance(given, Model):
        return given
    return _open_given(settings, given)


def _open_given(settings: Settings, chat: Any) -> Model:
    kind = str(getattr(chat, "_llm_type", type(chat).__name__))
    model = getattr(chat, "model_name", None) or getattr(chat, "model", None) or type(chat).__name__
    return _langchain(settings, f"{kind}:{model}", lambda: Connection(chat=chat))


def _open_named(settings: Settings, name: str) -> Model:
    provider, _, model = name.partition(":")
    if not model:
        raise UsageError(
            f"the model {name!r} is not of the form provider:model",
            remedy="such as local:qwen2.5-coder-1.5b or openai:gpt-4o",
        )
    if provider == "local":
        from suture.models.local import EmbeddedModel

        return EmbeddedModel(model, settings)
    if provider == "scripted":
        return open_script(model)
    if provider == "openai":
        return _open_openai(settings, name, model)
    if provider in PROVIDERS:
        return _open_packaged(settings, name, PROVIDERS[provider])
    raise UsageError(
        f"the model {name!r} is of an unknown provider",
        remedy=f"one of {', '.join(['local', 'scripted', 'openai', *PROVIDERS])}",
    )


def _open_openai(settings: Settings, name: str, model: str) -> Model:
    base_url = settings.model.base_url
    key = _reveal(settings.keys.openai)
    if not key and base_url is None:
        raise PrerequisiteError(
            f"{name!r} needs a key",
            remedy="set OPENAI_API_KEY, or model.base_url for a server of your own",
        )
    connect = partial(
        connect_openai, model, key=key or "none", base_url=base_url, timeout_s=settings.model.timeout_s
    )
    return _langchain(settings, name, connect, secret=key)


def _open_packaged(settings: Settings, name: str, provider: Provider) -> Model:
    for package in ("langchain", provider.package):
        if importlib.util.find_spec(package) is None:
            raise PrerequisiteError(
                f"{name!r} needs the package {package.replace('_', '-')!r}",
                remedy=f'pip install "suture[{provider.extra}]"',
            )
    knobs: dict[str, Any] = {}
    key = ""
    if provider.key is not None:
        key = _reveal(getattr(settings.keys, provider.key))
        if not key:
            raise PrerequisiteError(f"{name!r} needs a key", remedy=f"set {provider.key.upper()}_API_KEY")
        knobs |= {"api_key": key, "timeout": settings.model.timeout_s, "max_retries": RETRIES}
    if settings.model.base_url is not None:
        knobs["base_url"] = settings.model.base_url

    def connect() -> Connection:
        init_chat_model = importlib.import_module("langchain.chat_models").init_chat_model
        return Connection(chat=init_chat_model(name, **knobs))

    return _langchain(settings, name, connect, secret=key)


def _langchain(
    settings: Settings, name: str, connect: Callable[[], Connection], *, secret: str = ""
) -> LangChainModel:
    return LangChainModel(
        name, connect, seed=settings.model.seed, timeout_s=settings.model.timeout_s, secret=secret
    )


def _reveal(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret is not None else ""
