"""From a name such as `openai:gpt-5` to a model: the providers there are, and how each is opened.

A model that is missing is an error only when it is asked (`open_or_defer`): a cheaper repair may do without.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from pydantic import SecretStr

from suture.core.plugins import load_plugin, plugin_names
from suture.core.settings.schema import Settings
from suture.errors import PrerequisiteError, UsageError
from suture.models.chat_model import NO_MODEL, Model, RefusingModel, without_model
from suture.models.providers.connections import Connection, connect_anthropic, connect_ollama, connect_openai
from suture.models.providers.endpoints import EndpointLimits, endpoint_of
from suture.models.providers.langchain_model import LangChainModel
from suture.models.providers.urls import without_credentials
from suture.models.scripted import open_script

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A provider that is reached over HTTP through LangChain.

    Attributes:
        packages: What must be installed.
        extra: The extra of ours that installs it; empty for what is always there.
        address: Where it listens; `model.base_url` goes before.
        needs_key: Whether it refuses calls without a key at that address.
        key_variable: The variable that its users have set anyway.
    """

    packages: tuple[str, ...]
    extra: str = ""
    address: str
    needs_key: bool = True
    key_variable: str = ""


PROVIDERS = {
    "openai": Provider(
        packages=("langchain_openai",), address="https://api.openai.com/v1", key_variable="OPENAI_API_KEY"
    ),
    "anthropic": Provider(
        packages=("langchain_anthropic",),
        extra="anthropic",
        address="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "qwen": Provider(
        packages=("langchain_openai",),
        address="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variable="QWEN_API_KEY",
    ),
    "ollama": Provider(
        packages=("langchain_ollama",),
        extra="ollama",
        address="http://127.0.0.1:11434",
        needs_key=False,
        key_variable="OLLAMA_API_KEY",
    ),
}
GROUP = "suture.providers"
"""The group of entry points: each loads to `open(model, settings)`; what that gives is a `Model`, or a chat
model of LangChain's."""
OTHERS = ("local", "huggingface", "scripted")
"""Providers that answer without a server of someone else's."""


def open_given(settings: Settings, chat: BaseChatModel) -> Model:
    """A LangChain chat model that was handed in, behind our seam."""
    kind = str(getattr(chat, "_llm_type", type(chat).__name__))
    model = getattr(chat, "model_name", None) or getattr(chat, "model", None) or type(chat).__name__
    return _langchain(settings, f"{kind}:{model}", lambda: Connection(chat=chat))


def open_named(settings: Settings, name: str) -> Model:
    """The model of a name, as `provider:model`. Nothing is loaded or called yet.

    Raises:
        PrerequisiteError: A key, an extra or the weights are missing; there is no stand-in.
        UsageError: The name means nothing.
    """
    require_model_name(name)
    provider, _, model = name.partition(":")
    if name == NO_MODEL:
        return RefusingModel(NO_MODEL, partial(without_model, "this recipe's helpers ask a model"))
    if provider == "local":
        from suture.models.llama_server.local_model import EmbeddedModel

        return EmbeddedModel(model, settings)
    if provider == "huggingface":
        from suture.models.providers.transformers_model import TransformersModel

        return TransformersModel(model, settings)
    if provider == "scripted":
        return open_script(model)
    if provider in PROVIDERS:
        return _open_remote(settings, name, PROVIDERS[provider])
    opened = load_plugin(GROUP, provider, what="provider of models", where="a provider")(model, settings)
    return opened if isinstance(opened, Model) else open_given(settings, opened)


def require_model_name(name: str) -> None:
    """Refuse what no model can be called; whether there is such a model, its provider knows.

    Raises:
        UsageError: It is not of the form `provider:model`, or of an unknown provider.
    """
    provider, _, model = name.partition(":")
    if name == NO_MODEL:
        return
    if not model:
        raise UsageError(
            f"the model {name!r} is not of the form provider:model",
            remedy="such as local:qwen2.5-coder-1.5b or openai:gpt-4o; none asks nobody",
        )
    known = (*OTHERS, *PROVIDERS, *plugin_names(GROUP))
    if provider not in known:
        near = get_close_matches(provider, known, n=1)
        raise UsageError(
            f"the model {name!r} is of an unknown provider",
            remedy=(f"did you mean {near[0]}:{model}? " if near else "")
            + f"one of {', '.join(known)}; any server that speaks OpenAI's protocol is openai: with "
            "model.base_url",
        )


def _open_remote(settings: Settings, name: str, provider: Provider) -> Model:
    for package in provider.packages:
        if importlib.util.find_spec(package) is None:
            raise PrerequisiteError(
                f"{name!r} needs the package {package.replace('_', '-')!r}",
                remedy=f'pip install "suture[{provider.extra}]"',
            )
    scheme, _, model = name.partition(":")
    base_url = base_url_for(settings, scheme)
    secret: SecretStr | None = getattr(settings.keys, scheme, None)
    key = secret.get_secret_value() if secret is not None else ""
    if provider.needs_key and not key and base_url is None:
        raise PrerequisiteError(
            f"{name!r} needs a key",
            remedy=f"set {provider.key_variable}, or model.base_url for a server of your own",
        )
    timeout_s = settings.model.timeout_s
    connect: Callable[[], Connection]
    if scheme == "anthropic":
        connect = partial(connect_anthropic, model, key=key or "none", base_url=base_url, timeout_s=timeout_s)
    elif scheme == "ollama":
        connect = partial(
            connect_ollama,
            model,
            base_url=base_url or provider.address,
            timeout_s=timeout_s,
            context_tokens=settings.model.context_tokens,
        )
    else:
        address = base_url if scheme == "openai" else base_url or provider.address
        connect = partial(connect_openai, model, key=key or "none", base_url=address, timeout_s=timeout_s)
    where = base_url or provider.address
    return _langchain(settings, name, connect, secret=key, address=where, key_variable=provider.key_variable)


def base_url_for(settings: Settings, scheme: str) -> str | None:
    """`model.base_url`, for models of the provider that `model.name` is of; the others' own address holds."""
    return settings.model.base_url if settings.model.name.partition(":")[0] == scheme else None


def _langchain(
    settings: Settings,
    name: str,
    connect: Callable[[], Connection],
    *,
    secret: str = "",
    address: str = "",
    key_variable: str = "",
) -> LangChainModel:
    knobs = settings.model
    limits = EndpointLimits(concurrency=knobs.concurrency, requests_per_minute=knobs.requests_per_minute)
    return LangChainModel(
        name,
        connect,
        seed=knobs.seed,
        timeout_s=knobs.timeout_s,
        retries=knobs.retries,
        secret=secret,
        address=without_credentials(address),
        key_variable=key_variable,
        endpoint=endpoint_of(address or name, limits),
    )


def open_or_defer(settings: Settings, name: str) -> Model:
    """As `open_named`, but what is missing for the model is said when it is asked.

    Raises:
        UsageError: The name means nothing.
    """
    try:
        return open_named(settings, name)
    except PrerequisiteError as fault:
        missing = fault
        return RefusingModel(name, lambda: missing)
