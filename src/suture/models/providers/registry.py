"""Providers by name: from a model name such as `openai:gpt-5` to an open `Model`.

If something is missing for a model, the run fails only when the model is called (`open_model_lazily`),
because the search may repair the code without it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING

from pydantic import SecretStr

from suture.core.installation import format_install_command
from suture.core.plugins import load_plugin, plugin_names
from suture.core.settings.schema import Settings
from suture.errors import PrerequisiteError, UsageError
from suture.models.chat_model import NO_MODEL, Model, UnavailableModel, model_required_error
from suture.models.profiles import find_profile
from suture.models.providers.connections import (
    Connection,
    connect_anthropic,
    connect_bedrock,
    connect_google,
    connect_ollama,
    connect_openai,
    mask_credentials,
)
from suture.models.providers.endpoints import EndpointLimits, apply_served_context, get_endpoint
from suture.models.providers.error_mapping import ModelTarget
from suture.models.providers.langchain_model import LangChainModel
from suture.models.scripted_model import open_script

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True, kw_only=True)
class ProviderSpec:
    """A provider that is reached over HTTP through LangChain.

    Attributes:
        package: The Python package that must be installed.
        extra: Suture's extra that installs it; empty if it is always installed.
        address: The default base URL; `model.base_url` overrides it.
        needs_key: Whether that address refuses calls without a key.
        key_variable: The environment variable in which users keep the key.
    """

    package: str
    extra: str = ""
    address: str
    needs_key: bool = True
    key_variable: str = ""


PROVIDERS = {
    "openai": ProviderSpec(
        package="langchain_openai", address="https://api.openai.com/v1", key_variable="OPENAI_API_KEY"
    ),
    "anthropic": ProviderSpec(
        package="langchain_anthropic",
        extra="anthropic",
        address="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "qwen": ProviderSpec(
        package="langchain_openai",
        address="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        key_variable="QWEN_API_KEY",
    ),
    "deepseek": ProviderSpec(
        package="langchain_openai", address="https://api.deepseek.com/v1", key_variable="DEEPSEEK_API_KEY"
    ),
    "openrouter": ProviderSpec(
        package="langchain_openai",
        address="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
    ),
    "google": ProviderSpec(
        package="langchain_google_genai",
        extra="google",
        address="https://generativelanguage.googleapis.com",
        key_variable="GEMINI_API_KEY",
    ),
    "bedrock": ProviderSpec(
        package="langchain_aws",
        extra="bedrock",
        address="bedrock-runtime",
        needs_key=False,
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
    ),
    "ollama": ProviderSpec(
        package="langchain_ollama",
        extra="ollama",
        address="http://127.0.0.1:11434",
        needs_key=False,
        key_variable="OLLAMA_API_KEY",
    ),
}
PROVIDER_PLUGIN_GROUP = "suture.providers"
"""Entry point group of provider plugins. Each loads to `open(model, settings)`, which returns a `Model` or a
LangChain chat model."""
LOCAL_PROVIDERS = ("local", "huggingface", "scripted")
"""Providers that need no server of a third party."""


def wrap_langchain_chat(settings: Settings, chat: BaseChatModel) -> Model:
    """Return a `Model` that calls a LangChain chat model."""
    kind = str(getattr(chat, "_llm_type", type(chat).__name__))
    model = getattr(chat, "model_name", None) or getattr(chat, "model", None) or type(chat).__name__
    name = f"{kind}:{model}"
    return _build_langchain_model(
        settings, ModelTarget(name=name), lambda: Connection(chat=chat), address=name
    )


def open_model_by_name(settings: Settings, name: str) -> Model:
    """Return the model called `provider:model`. Nothing is loaded or generated yet.

    Raises:
        PrerequisiteError: A key, an extra or the weights are missing.
        UsageError: The name is not a model name.
    """
    require_model_name(name)
    provider, _, model = name.partition(":")
    if name == NO_MODEL:
        return UnavailableModel(NO_MODEL, partial(model_required_error, "this recipe's helpers ask a model"))
    if provider == "local":
        from suture.models.llama_server.local_model import LocalModel

        return LocalModel(model, settings)
    if provider == "huggingface":
        from suture.models.providers.transformers_model import TransformersModel

        return TransformersModel(model, settings)
    if provider == "scripted":
        return open_script(model)
    if provider in PROVIDERS:
        return _open_remote_model(settings, name, PROVIDERS[provider])
    opened = load_plugin(PROVIDER_PLUGIN_GROUP, provider, what="provider of models", where="a provider")(
        model, settings
    )
    return opened if isinstance(opened, Model) else wrap_langchain_chat(settings, opened)


def require_model_name(name: str) -> None:
    """Refuse a string that cannot be a model name. Only the provider knows whether the model exists.

    Raises:
        UsageError: The name does not have the form `provider:model`, or the provider is unknown.
    """
    provider, _, model = name.partition(":")
    if name == NO_MODEL:
        return
    if not model:
        raise UsageError(
            f"the model {name!r} is not of the form provider:model",
            remedy="such as local:qwen2.5-coder-1.5b or openai:gpt-4o; `none` runs without a model",
        )
    providers = (*LOCAL_PROVIDERS, *PROVIDERS, *plugin_names(PROVIDER_PLUGIN_GROUP))
    if provider not in providers:
        matches = get_close_matches(provider, providers, n=1)
        suggestion = f"did you mean {matches[0]}:{model}? " if matches else ""
        raise UsageError(
            f"the model {name!r} has an unknown provider",
            remedy=f"{suggestion}one of {', '.join(providers)}; any server that speaks OpenAI's protocol is "
            "openai: with model.base_url",
        )


def _open_remote_model(settings: Settings, name: str, provider: ProviderSpec) -> Model:
    """Return a model of a provider over HTTP; refuse it if its package or key is missing."""
    if importlib.util.find_spec(provider.package) is None:
        raise PrerequisiteError(
            f"{name!r} needs the package {provider.package.replace('_', '-')!r}",
            remedy=format_install_command(provider.extra),
        )
    scheme, _, model = name.partition(":")
    # `model.base_url` belongs to the provider of `model.name`; a fallback of another provider ignores it.
    base_url = settings.model.base_url if settings.model.name.partition(":")[0] == scheme else None
    secret: SecretStr | None = getattr(settings.keys, scheme, None)
    key = secret.get_secret_value() if secret is not None else ""
    if provider.needs_key and not key and base_url is None:
        raise PrerequisiteError(
            f"{name!r} needs a key",
            remedy=f"set {provider.key_variable}, or model.base_url for a server of your own",
        )
    address = base_url or provider.address
    if scheme == "ollama":
        settings = apply_served_context(settings, name, address)
    profile = find_profile(name, settings)
    timeout_s = settings.model.timeout_s
    connect: Callable[[], Connection]
    if scheme == "anthropic":
        connect = partial(connect_anthropic, model, key=key or "none", base_url=base_url, timeout_s=timeout_s)
    elif scheme == "google":
        connect = partial(connect_google, model, key=key or "none", base_url=base_url, timeout_s=timeout_s)
    elif scheme == "bedrock":
        connect = partial(connect_bedrock, model, key=key, base_url=base_url, timeout_s=timeout_s)
    elif scheme == "ollama":
        connect = partial(
            connect_ollama,
            model,
            base_url=address,
            timeout_s=timeout_s,
            context_tokens=profile.context_tokens,
            thinks=profile.reasoning,
        )
    else:
        # OpenAI's own SDK knows its address; `None` also tells `connect_openai` that it is OpenAI itself.
        openai_url = base_url if scheme == "openai" else base_url or provider.address
        connect = partial(
            connect_openai,
            model,
            key=key or "none",
            base_url=openai_url,
            timeout_s=timeout_s,
            thinks=profile.reasoning,
        )
    target = ModelTarget(
        name=name,
        address=mask_credentials(address),
        secret=key,
        key_variable=provider.key_variable,
        has_own_address=base_url is not None,
    )
    return _build_langchain_model(settings, target, connect, address=address)


def _build_langchain_model(
    settings: Settings, target: ModelTarget, connect: Callable[[], Connection], *, address: str
) -> LangChainModel:
    """Return a model whose rate limits are shared with all models at this address."""
    limits = EndpointLimits(
        concurrency=settings.model.concurrency, requests_per_minute=settings.model.requests_per_minute
    )
    return LangChainModel(
        target,
        connect,
        seed=settings.model.seed,
        timeout_s=settings.model.timeout_s,
        retries=settings.model.retries,
        endpoint=get_endpoint(address, limits),
        profile=find_profile(target.name, settings),
    )


def open_model_lazily(settings: Settings, name: str) -> Model:
    """Open a model as `open_model_by_name` does, but report missing prerequisites only when it is called."""
    try:
        return open_model_by_name(settings, name)
    except PrerequisiteError as fault:
        prerequisite_error = fault  # Python deletes the name `fault` after this block
        return UnavailableModel(name, lambda: prerequisite_error)
