"""The knobs of models: of all of them, and of those of each role."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from suture.core.settings.groups import Group, NamesAFile


def _split_names(value: object) -> object:
    """A variable or a flag holds a list as one text with commas."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _address(text: str | None) -> str | None:
    """An address that can be asked for something.

    Raises:
        ValueError: It is none. The text is not repeated: a password may stand in it.
    """
    if text is None:
        return None
    parts = urlsplit(text)  # which itself refuses half an IPv6 address
    if not text.isprintable() or " " in text or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(
            "an address begins with http:// or https:// and a host, such as http://127.0.0.1:8000/v1"
        )
    if "?" in text or "#" in text:  # a request's path is put behind it
        raise ValueError("an address has no `?` and no `#`: what a server asks for there belongs into a key")
    if not 0 < (parts.port or 80) < 65536:  # a number beyond is refused by asking for it
        raise ValueError("there is no such port")
    return text


Names = Annotated[tuple[str, ...], BeforeValidator(_split_names)]
Address = Annotated[str | None, AfterValidator(_address)]
ModelName = Annotated[str, NamesAFile("model")]
ModelNameOrNone = Annotated[str | None, NamesAFile("model")]
ModelNames = Annotated[Names, NamesAFile("model")]
OwnTemperature = Annotated[
    float | None, Field(ge=0, le=2, description="Its sampling temperature, where it is not greedy.")
]
OwnLength = Annotated[int | None, Field(ge=16, description="The most tokens of one of its replies.")]


class ModelSettings(Group):
    """Which model answers, and how."""

    name: ModelName = "auto"
    """`provider:model`, such as `local:qwen2.5-coder-1.5b`; `auto` takes what is here, `none` asks nobody."""
    fallbacks: ModelNames = ()
    """Models to ask, in this order, when the one before has failed; each step down is told."""
    temperature: float = Field(default=0.8, ge=0, le=2)
    """Sampling temperature of every sample after the first, which is greedy."""
    max_tokens: int = Field(default=1024, ge=16)
    """The most tokens of one reply; code that is cut there is asked for once more with twice as many.
    A reply that is only the rest of a function has 512 at first."""
    prefill: bool | None = None
    """Whether a reply may begin with what is known of the code; where unset, models known to take it."""
    tools: bool | None = None
    """Whether the model calls tools, and may work as an agent in `adaptive`; where unset, hosted ones do."""
    timeout_s: float = Field(default=600, gt=0)
    """The most seconds of one call, retries included."""
    retries: int = Field(default=2, ge=0)
    """Tries after the first, of a fault that may pass and has cost nothing."""
    concurrency: int = Field(default=8, ge=1)
    """Calls at once to one address."""
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Calls a minute to one address, evenly spaced."""
    base_url: Address = None
    """Address of an OpenAI-compatible server, or of Ollama; for models of the provider in `model.name`."""
    context_tokens: int = Field(default=8192, ge=1024)
    """Context of the embedded model, for each of its parallel slots, and of Ollama's."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of the embedded model; measured once per machine where unset."""
    slots: int | None = Field(default=None, ge=1)
    """Replies that the embedded model draws at once; by its threads and the free memory where unset."""
    seed: int = 0
    """Seed of the sampler; reply `index` of a call uses `seed + index`."""
    quantization: Literal["none", "4bit"] = "none"
    """How `huggingface:` models are loaded; `4bit` needs bitsandbytes and CUDA."""
    prices: Path | None = None
    """A TOML file of prices, which go before those that Suture comes with (docs/models.md)."""


class RoleSettings(Group):
    """A model of its own for a role, and how it draws; where unset, what the group `model` says holds.

    Before that, the optimiser and the escalation take what the coder has, the reviewer what the critic has.
    """

    coder: ModelNameOrNone = None
    """`provider:model` that writes and repairs code."""
    coder_temperature: OwnTemperature = None
    coder_max_tokens: OwnLength = None
    planner: ModelNameOrNone = None
    """`provider:model` that cuts a task into parts."""
    planner_temperature: OwnTemperature = None
    planner_max_tokens: OwnLength = None
    tester: ModelNameOrNone = None
    """`provider:model` that writes tests, for the spec, the property and the adversarial tester."""
    tester_temperature: OwnTemperature = None
    tester_max_tokens: OwnLength = None
    critic: ModelNameOrNone = None
    """`provider:model` that criticises a candidate."""
    critic_temperature: OwnTemperature = None
    critic_max_tokens: OwnLength = None
    reviewer: ModelNameOrNone = None
    """`provider:model` that reviews code that passes; the critic's where unset."""
    reviewer_temperature: OwnTemperature = None
    reviewer_max_tokens: OwnLength = None
    debugger: ModelNameOrNone = None
    """`provider:model` that looks for the cause of a failure."""
    debugger_temperature: OwnTemperature = None
    debugger_max_tokens: OwnLength = None
    summariser: ModelNameOrNone = None
    """`provider:model` that draws lessons from what was tried."""
    summariser_temperature: OwnTemperature = None
    summariser_max_tokens: OwnLength = None
    optimiser: ModelNameOrNone = None
    """`provider:model` that makes code that passes simpler; the coder's where unset."""
    optimiser_temperature: OwnTemperature = None
    optimiser_max_tokens: OwnLength = None
    escalate: ModelNameOrNone = None
    """`provider:model` that is stronger, and takes over from the coder on a hard case; nobody where unset."""
    escalate_temperature: OwnTemperature = None
    escalate_max_tokens: OwnLength = None
