"""What a model can do besides answering, known from its name: nobody is asked, so a replay decides alike."""

from __future__ import annotations

import re

from suture.settings.schema import Settings

BEGUN_UNASKED = ("local", "ollama")
"""Providers that go on from a last turn of the assistant's, whichever model it is."""
BEGUN_BY_ANTHROPIC = re.compile(r"claude-(?:2|3|instant|(?:opus|sonnet|haiku)-4-(?:[015]\b|\d{8}))")
"""Its models up to 4.5; later ones refuse a reply that is begun for them."""


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
