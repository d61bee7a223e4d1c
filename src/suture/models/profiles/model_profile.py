"""`ModelProfile`: what a model can do. It is found without asking the provider, so that a replay decides alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from suture.core.settings.schema import Settings

SMALL_MODEL_PROVIDERS = ("local", "huggingface", "ollama")
"""Providers whose models are small unless their name gives a larger size."""
MIN_CAPABLE_BILLIONS = 20.0
"""Parameters in billions from which a model holds a conversation. Chosen by judgement; not measured."""
PARAMETER_COUNT = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
"""Matches the parameter count in a name such as `qwen2.5-coder-1.5b` or `llama3:70b`."""
PREFILL_PROVIDERS = ("local", "ollama")
"""Providers that continue a last assistant message with any model."""
PREFILL_ANTHROPIC_MODELS = re.compile(r"claude-(?:2|3|instant|(?:opus|sonnet|haiku)-4-(?:[015]\b|\d{8}))")
"""Anthropic's models up to 4.5; later ones refuse a prefilled reply."""
TOOL_CALL_PROVIDERS = ("anthropic", "openai", "qwen")
"""Providers whose own models were trained to call tools over many steps."""


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """What a model can do.

    Attributes:
        context_tokens: Tokens of prompt and reply together; `None` if unknown.
        max_output_tokens: Maximum tokens of a reply, thinking included; `None` if unknown.
        is_capable: Whether the model holds a conversation over a whole project. Other models get short prompts
            that let them write only what is missing.
        tools: Whether it calls tools through its provider's protocol.
        parallel_tools: Whether one reply may call several tools.
        structured_output: Whether the provider enforces a JSON schema.
        reasoning: Whether it thinks before it answers, at the cost of output tokens.
        prefill: Whether it continues a reply that we begin.
        prompt_cache: How a repeated beginning of a prompt is cached: `explicit` needs marks in the request.
        rejected_parameters: Request parameters that the model refuses, such as `temperature`.
    """

    context_tokens: int | None = None
    max_output_tokens: int | None = None
    is_capable: bool = True
    tools: bool = False
    parallel_tools: bool = False
    structured_output: bool = False
    reasoning: bool = False
    prefill: bool = False
    prompt_cache: Literal["none", "automatic", "explicit"] = "none"
    rejected_parameters: frozenset[str] = frozenset()


def find_profile(name: str, settings: Settings) -> ModelProfile:
    """Return the profile of a model.

    Args:
        name: `provider:model`.
        settings: `model.prefill` and `model.tools` override what is known about the model.
    """
    provider, _, model = name.partition(":")
    sizes = [float(size) for size in PARAMETER_COUNT.findall(model)]
    is_small = max(sizes) < MIN_CAPABLE_BILLIONS if sizes else provider in SMALL_MODEL_PROVIDERS
    if provider == "anthropic":
        prefill = PREFILL_ANTHROPIC_MODELS.match(model) is not None
    else:
        prefill = provider in PREFILL_PROVIDERS
    tools = provider in TOOL_CALL_PROVIDERS and not is_small
    return ModelProfile(
        context_tokens=settings.model.context_tokens if provider in ("local", "ollama") else None,
        is_capable=not is_small,
        tools=tools if settings.model.tools is None else settings.model.tools,
        parallel_tools=tools,
        prefill=prefill if settings.model.prefill is None else settings.model.prefill,
    )
