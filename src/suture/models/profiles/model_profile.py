"""`ModelProfile`: what a model can do. It is found without asking the provider, so that a replay decides alike.

LangChain's partner packages keep profiles as plain data in `data/_profiles.py`. That file is executed by its path:
importing it by name would import the package, and with it the vendor's SDK, which takes seconds.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from suture.core.settings.schema import ProfileSettings, Settings
from suture.models.chat_model import NO_MODEL
from suture.models.profiles.model_families import MIN_CAPABLE_BILLIONS, find_family, size_in_name

ProfileOrigin = Literal["default", "provider", "family", "size", "langchain", "setting"]
"""Where a value of a profile comes from: our default, the provider, the family or the size in the model's name,
LangChain's profiles, or a setting."""

LANGCHAIN_KINDS: Mapping[str, str] = {
    "openai-chat": "openai",
    "azure-openai-chat": "openai",
    "anthropic-chat": "anthropic",
    "chat-ollama": "ollama",
    "chat-google-generative-ai": "google",
    "vertexai": "google",
    "amazon_bedrock_chat": "bedrock",
    "amazon_bedrock_converse_chat": "bedrock",
    "openrouter-chat": "openrouter",
}
"""The kind of a LangChain chat model that a caller passes in -> the provider whose models it calls."""
SMALL_MODEL_PROVIDERS = ("local", "huggingface", "ollama", "scripted")
"""Providers whose models are small unless their names say otherwise."""
TOOL_PROVIDERS = ("openai", "anthropic", "qwen", "google", "bedrock", "openrouter", "deepseek")
"""Providers that serve capable models with native tools, several of them in one reply."""
SCHEMA_PROVIDERS = ("openai", "anthropic", "qwen", "google", "bedrock", "openrouter", "local", "ollama")
"""Providers that enforce a JSON schema. DeepSeek only promises JSON."""
PREFILL_PROVIDERS = ("local", "ollama")
"""Providers that continue a last assistant message with any model."""
PREFILL_ANTHROPIC_MODELS = re.compile(r"claude-(?:2|3|instant|(?:opus|sonnet|haiku)-4-(?:[015]\b|\d{8}))")
"""Anthropic's models up to 4.5; later ones refuse a prefilled reply."""
OPENAI_REASONING_REJECTS = frozenset({"temperature", "top_p", "logprobs", "stop"})
"""Parameters that OpenAI's reasoning models refuse."""

THINKING_TOKENS: Mapping[str, int] = {
    "none": 0,
    "minimal": 1_024,
    "low": 4_096,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 32_768,
}
"""Room for thinking by reasoning effort, in tokens. QwQ and Qwen3 think for some 3,000 tokens about a small task;
the other values are chosen by judgement and not measured."""
DEFAULT_EFFORT = "medium"
"""The effort that is assumed of a model that thinks, if nothing is known."""
SMALL_ANSWER_TOKENS = 1_024
"""Default length of an answer of a small model: a function or a short file. The measured prompts used it."""
CAPABLE_ANSWER_TOKENS = 16_384
"""Default length of an answer of a capable model: whole files of up to about a thousand lines."""
UNKNOWN_ANSWER_TOKENS = 4_096
"""Default length of an answer if no limit of the model is known. Servers such as vLLM refuse a request whose
prompt and reply exceed the context, and small servers have contexts of 8192 tokens."""


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """What a model can do.

    Attributes:
        context_tokens: Tokens of prompt and reply together; `None` if unknown.
        max_output_tokens: Maximum tokens of a reply, thinking included; `None` if unknown.
        is_capable: Whether the model holds a conversation over a whole project. Other models get short prompts
            that let them write only what is missing.
        tools: Whether it calls tools through its provider's protocol.
        structured_output: Whether the provider enforces a JSON schema.
        reasoning: Whether it may think before it answers, at the cost of output tokens.
        reasoning_effort: The effort to request; empty leaves it to the provider.
        thinking_tokens: Tokens of a reply that are reserved for thinking, besides those of the answer.
        prefill: Whether it continues a reply that we begin.
        stop: Whether it takes stop sequences.
        prompt_cache: How a repeated beginning of a prompt is cached: `explicit` needs marks in the request.
        rejected_parameters: Request parameters that the model refuses, such as `temperature`.
        origins: Name of an attribute -> where its value comes from.
    """

    context_tokens: int | None = None
    max_output_tokens: int | None = None
    is_capable: bool = True
    tools: bool = False
    structured_output: bool = False
    reasoning: bool = False
    reasoning_effort: str = ""
    thinking_tokens: int = 0
    prefill: bool = False
    stop: bool = True
    prompt_cache: Literal["none", "automatic", "explicit"] = "none"
    rejected_parameters: frozenset[str] = frozenset()
    origins: Mapping[str, ProfileOrigin] = field(default_factory=dict, compare=False)

    @property
    def answer_tokens(self) -> int:
        """Return the default length of an answer in tokens, thinking not included."""
        if not self.is_capable:
            return SMALL_ANSWER_TOKENS
        if self.max_reply_tokens is None:
            return UNKNOWN_ANSWER_TOKENS
        limits = [CAPABLE_ANSWER_TOKENS]
        if self.max_output_tokens is not None:
            limits.append(max(self.max_output_tokens - self.thinking_tokens, self.max_output_tokens // 2))
        if self.context_tokens is not None:
            limits.append(self.context_tokens // 4)
        return min(limits)

    @property
    def max_reply_tokens(self) -> int | None:
        """Return the longest reply that may be requested in tokens; `None` if no limit is known.

        Prompt and reply share the context; the reply gets at most half of it.
        """
        half = None if self.context_tokens is None else self.context_tokens // 2
        limits = [limit for limit in (self.max_output_tokens, half) if limit is not None]
        return min(limits, default=None)

    def reply_tokens(self, answer_tokens: int) -> int:
        """Return the length of a reply in tokens: its answer, and the thinking before it."""
        if not self.thinking_tokens:
            return min(answer_tokens, self.max_output_tokens or answer_tokens)
        wanted = answer_tokens + self.thinking_tokens
        return wanted if self.max_reply_tokens is None else max(min(wanted, self.max_reply_tokens), 1)


def find_profile(name: str, settings: Settings) -> ModelProfile:
    """Return the profile of a model.

    Args:
        name: `provider:model`, or the name of a LangChain chat model that the caller passed in.
        settings: `model.profile.*` overrides what is known about the model of `model.name`; about any model
            if that is `auto` or `none`. `model.profiles` overrides it for the models that it names.
    """
    kind, _, model = name.partition(":")
    provider = "scripted" if "fake" in kind else LANGCHAIN_KINDS.get(kind, kind)
    layers: list[tuple[ProfileOrigin, dict[str, Any]]] = [
        ("provider", _provider_values(provider, model)),
        ("family", {} if provider == "scripted" else _family_values(provider, model)),
        ("size", _size_values(model)),
        ("langchain", {} if provider in SMALL_MODEL_PROVIDERS else _langchain_values(provider, model)),
    ]
    if kind in ("local", "ollama"):  # Suture starts these with the context of the setting
        layers.append(("setting", {"context_tokens": settings.model.context_tokens}))
    if settings.model.name in (name, "auto", NO_MODEL):
        layers.append(("setting", _setting_values(settings.model.profile)))
    if name in settings.model.profiles:
        layers.append(("setting", _setting_values(settings.model.profiles[name])))
    values: dict[str, Any] = {}
    origins: dict[str, ProfileOrigin] = {
        each.name: "default" for each in fields(ModelProfile) if each.name != "origins"
    }
    for origin, layer in layers:
        values |= layer
        origins |= dict.fromkeys(layer, origin)
    return _complete(ModelProfile(**_consistent(values, origins), origins=origins))


def override_context_tokens(settings: Settings, name: str, context_tokens: int) -> Settings:
    """Return the settings with another context size for the model of this name."""
    profile = settings.model.profiles.get(name, ProfileSettings())
    profile = profile.model_copy(update={"context_tokens": context_tokens})
    profiles = {**settings.model.profiles, name: profile}
    return settings.model_copy(update={"model": settings.model.model_copy(update={"profiles": profiles})})


def _provider_values(provider: str, model: str) -> dict[str, Any]:
    has_tools = provider in TOOL_PROVIDERS
    prefill = provider in PREFILL_PROVIDERS
    if provider == "anthropic":
        prefill = PREFILL_ANTHROPIC_MODELS.match(model) is not None
    caches: dict[str, str] = {"anthropic": "explicit", "bedrock": "explicit", "huggingface": "none"}
    cache = "explicit" if model.startswith("anthropic/") else caches.get(provider)  # of OpenRouter
    is_known = has_tools or provider in SMALL_MODEL_PROVIDERS
    return {
        "is_capable": provider not in SMALL_MODEL_PROVIDERS,
        "tools": has_tools,
        "structured_output": provider in SCHEMA_PROVIDERS,
        "prefill": prefill,
        "prompt_cache": cache or ("automatic" if is_known and provider != "scripted" else "none"),
    }


def _family_values(provider: str, model: str) -> dict[str, Any]:
    family = find_family(model)
    if family is None:
        return {}
    values: dict[str, Any] = {"is_capable": family.is_capable, "reasoning": family.reasoning}
    if family.context_tokens is not None:
        values["context_tokens"] = family.context_tokens
    if family.max_output_tokens is not None:
        values["max_output_tokens"] = family.max_output_tokens
    if provider in (*TOOL_PROVIDERS, "ollama"):
        values["tools"] = family.tools
    if provider == "openai" and family.reasoning and re.match(r"gpt-[5-9]|o\d", model):
        values |= {"stop": False, "rejected_parameters": OPENAI_REASONING_REJECTS}
    return values


def _size_values(model: str) -> dict[str, Any]:
    size = size_in_name(model)
    return {} if size is None else {"is_capable": size >= MIN_CAPABLE_BILLIONS}


def _langchain_values(provider: str, model: str) -> dict[str, Any]:
    """Return what LangChain's profile says; unknown fields and zeros, as of image models, say nothing."""
    found = find_langchain_profile(provider, model)
    if not found:
        return {}
    names = {
        "context_tokens": "max_input_tokens",
        "max_output_tokens": "max_output_tokens",
        "structured_output": "structured_output",
        "reasoning": "reasoning_output",
        "tools": "tool_calling",
    }
    values = {ours: found[theirs] for ours, theirs in names.items() if found.get(theirs) not in (None, 0, "")}
    values |= {
        "tools": bool(found.get("tool_calling", True)),
        "reasoning": bool(found.get("reasoning_output")),
    }
    values["is_capable"] = True
    if found.get("temperature") is False:
        values["rejected_parameters"] = frozenset({"temperature"})
    if provider == "openai" and values["reasoning"]:
        values |= {"stop": False, "rejected_parameters": OPENAI_REASONING_REJECTS}
    if values["reasoning"] and found.get("reasoning_effort_default") in THINKING_TOKENS:
        values["thinking_tokens"] = THINKING_TOKENS[found["reasoning_effort_default"]]
    return values


def _setting_values(profile: ProfileSettings) -> dict[str, Any]:
    values = {
        "is_capable": profile.capable,
        **{name: getattr(profile, name) for name in type(profile).model_fields if name != "capable"},
    }
    if profile.rejected_parameters is not None:
        values["rejected_parameters"] = frozenset(profile.rejected_parameters)
    return {name: value for name, value in values.items() if value is not None}


def _consistent(values: dict[str, Any], origins: Mapping[str, ProfileOrigin]) -> dict[str, Any]:
    """Return the values without tools for small models, unless a setting asks for them.

    Their chat templates may have tools, but the measured prompts of small models describe commands in words.
    """
    if not values["is_capable"] and origins["tools"] != "setting":
        values |= {"tools": False}
    return values


def _complete(profile: ModelProfile) -> ModelProfile:
    """Return the profile with the room for thinking that follows from its effort."""
    if not profile.reasoning or profile.reasoning_effort == "none":
        is_set = profile.origins["thinking_tokens"] == "setting"
        return profile if is_set else replace(profile, thinking_tokens=0)
    if profile.origins["thinking_tokens"] == "setting":
        return profile
    if profile.reasoning_effort:
        return replace(profile, thinking_tokens=THINKING_TOKENS[profile.reasoning_effort])
    return replace(profile, thinking_tokens=profile.thinking_tokens or THINKING_TOKENS[DEFAULT_EFFORT])


PACKAGES_BY_PROVIDER: Mapping[str, str] = {
    "openai": "langchain_openai",
    "anthropic": "langchain_anthropic",
    "google": "langchain_google_genai",
    "bedrock": "langchain_aws",
    "openrouter": "langchain_openrouter",
}
"""Provider -> the package with the profiles of its models. Only those that are installed are read."""
SNAPSHOT_SUFFIX = re.compile(r"(-latest|-\d{4}-\d{2}-\d{2}|-\d{8})?(-v\d+)?(:\w+)?$")
"""The suffix that pins a version of a model; it also matches Bedrock's `-v1:0` and OpenRouter's `:free`."""
VENDOR_PREFIX = re.compile(r"^(?:[\w-]+/|(?:[a-z]{2,6}\.)?(?:anthropic|amazon|meta|mistral)\.)+")
"""The vendor before a model's name: `openai/gpt-5` with OpenRouter, `us.anthropic.claude-...` with Bedrock."""


def find_langchain_profile(provider: str, model: str) -> Mapping[str, Any]:
    """Return LangChain's profile of a model; empty if no installed package knows it.

    The provider's own package counts first. A proxy may serve another vendor's model under its usual name.
    """
    own = PACKAGES_BY_PROVIDER.get(provider)
    packages = sorted(PACKAGES_BY_PROVIDER.values(), key=lambda package: package != own)
    for name in _spellings(model):
        for package in packages:
            profile = _read_profiles(package).get(name)
            if isinstance(profile, Mapping):
                return profile
    return {}


def _spellings(model: str) -> Iterator[str]:
    """Yield the names under which a model may be listed, the most exact one first."""
    base = VENDOR_PREFIX.sub("", model.lower())
    yield model
    yield base
    pinned = SNAPSHOT_SUFFIX.sub("", base)
    yield pinned
    if pinned.startswith("claude"):  # OpenRouter writes `claude-sonnet-4.5`
        yield pinned.replace(".", "-")


@lru_cache
def _read_profiles(package: str) -> Mapping[str, Any]:
    """Return a package's profiles by model; empty if it is not installed or keeps them elsewhere."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        return {}
    path = Path(found.origin).parent / "data" / "_profiles.py"
    spec = importlib.util.spec_from_file_location(f"{package}_profile_data", path)
    if spec is None or spec.loader is None or not path.is_file():
        return {}
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    profiles = getattr(module, "_PROFILES", None)
    return profiles if isinstance(profiles, Mapping) else {}
