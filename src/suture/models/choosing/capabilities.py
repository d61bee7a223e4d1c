"""What a model can do besides answering, known from its name: nobody is asked, so a replay decides alike."""

from __future__ import annotations

import re

from suture.settings.schema import Settings

BEGUN_UNASKED = ("local", "ollama")
"""Providers that go on from a last turn of the assistant's, whichever model it is."""
BEGUN_BY_ANTHROPIC = re.compile(r"claude-(?:2|3|instant|(?:opus|sonnet|haiku)-4-(?:[015]\b|\d{8}))")
"""Its models up to 4.5; later ones refuse a reply that is begun for them."""
CALL_TOOLS = ("anthropic", "openai", "qwen")
"""Providers whose own models were trained to call tools, and to work with them for many steps."""


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
