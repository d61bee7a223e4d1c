"""What is known about families of models by their names, for models that LangChain's profiles do not list.

The numbers are those of the publishers' model cards. A server may be configured with a smaller context: a prompt
that it refuses as too long is shortened and sent again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MIN_CAPABLE_BILLIONS = 20.0
"""Parameters in billions from which a model holds a conversation. Chosen by judgement; not measured."""
PARAMETER_COUNT = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)b(?![a-z0-9])")
"""Matches the parameter count in a name such as `qwen2.5-coder-1.5b`, `llama3:70b` or `mixtral-8x7b`. The active
parameters of a mixture of experts (`30b-a3b`) do not match."""


@dataclass(frozen=True, kw_only=True)
class ModelFamily:
    """Models with a common name.

    Attributes:
        pattern: Matches the names, in lower case. The first family that matches counts.
        context_tokens: Context size of the smallest member; `None` if the members differ much.
        max_output_tokens: Maximum length of a reply; `None` if only the context limits it.
        is_capable: Whether a model without a size in its name is capable. A size in the name decides otherwise.
        tools: Whether its chat template has native tool calls.
        reasoning: Whether it thinks before it answers.
    """

    pattern: re.Pattern[str]
    context_tokens: int | None = None
    max_output_tokens: int | None = None
    is_capable: bool = False
    tools: bool = False
    reasoning: bool = False


def _family(
    pattern: str,
    context_tokens: int | None = None,
    max_output_tokens: int | None = None,
    *,
    is_capable: bool = False,
    tools: bool = False,
    reasoning: bool = False,
) -> ModelFamily:
    return ModelFamily(
        pattern=re.compile(rf"(?:^|[/:._-]){pattern}"),
        context_tokens=context_tokens,
        max_output_tokens=max_output_tokens,
        is_capable=is_capable,
        tools=tools,
        reasoning=reasoning,
    )


FAMILIES = (
    # Distilled models carry two names, so the families of thinking models come first.
    _family("deepseek-(?:r1|reasoner)", 65_536, is_capable=True, reasoning=True),
    _family("(?:qwq|qvq)", 32_768, is_capable=True, tools=True, reasoning=True),
    _family("qwen-?3(?:\\.\\d)?-?(?:coder|next)", 262_144, is_capable=True, tools=True),
    _family("qwen-?3.*(?:instruct|-max|-plus|-flash)", 131_072, is_capable=True, tools=True),
    _family("qwen-?3", 32_768, tools=True, reasoning=True),
    _family("qwen-(?:max|plus|turbo|flash|long)", 32_768, 8_192, is_capable=True, tools=True),
    _family("qwen", 32_768, 8_192, tools=True),
    _family("codellama", 16_384),
    _family("llama-?4", 131_072, is_capable=True, tools=True),
    _family("(?:meta-)?llama-?3[.:_-]?[123]\\b", 131_072, tools=True),
    _family("(?:meta-)?llama-?3", 8_192),
    _family("llama-?2", 4_096),
    _family("deepseek-coder-v2", 131_072),
    _family("deepseek-coder", 16_384),
    _family("deepseek", 65_536, 8_192, is_capable=True, tools=True),
    _family("gemma-?[3-9]", 32_768),
    _family("gemma", 8_192),
    _family("magistral", 40_960, is_capable=True, tools=True, reasoning=True),
    _family("(?:codestral|devstral|mistral-(?:small|medium|large))", 32_768, is_capable=True, tools=True),
    _family("(?:mixtral|ministral|mistral)", 32_768, tools=True),
    _family("phi-?4.*reasoning", 32_768, reasoning=True),
    _family("phi-?4", 16_384),
    _family("phi-?3", 4_096),
    _family("gpt-oss", 131_072, is_capable=True, tools=True, reasoning=True),
    _family("glm-?(?:4\\.[5-9]|[5-9])", 131_072, is_capable=True, tools=True, reasoning=True),
    _family("kimi.*thinking", 131_072, is_capable=True, tools=True, reasoning=True),
    _family("kimi", 131_072, is_capable=True, tools=True),
    # Closed models that the installed packages do not list: older, newer, or served by a proxy.
    _family("claude-(?:2|instant|3-(?:opus|sonnet|haiku))", 200_000, 4_096, is_capable=True, tools=True),
    _family("claude-3-5", 200_000, 8_192, is_capable=True, tools=True),
    _family("claude", 200_000, 32_000, is_capable=True, tools=True),
    _family("gemini-(?:1|2\\.0)", 1_048_576, 8_192, is_capable=True, tools=True),
    _family("gemini", 1_048_576, 65_536, is_capable=True, tools=True, reasoning=True),
    _family("(?:gpt-[5-9]|o\\d)(?![a-z0-9])", 200_000, 100_000, is_capable=True, tools=True, reasoning=True),
    _family("gpt-4", 128_000, 16_384, is_capable=True, tools=True),
)
"""Families in order of precedence."""


def find_family(model: str) -> ModelFamily | None:
    """Return the family of a model by its name, or `None` if it is unknown."""
    name = model.lower()
    return next((family for family in FAMILIES if family.pattern.search(name)), None)


def size_in_name(model: str) -> float | None:
    """Return the parameters in billions that a model's name gives, or `None` if it gives none."""
    sizes = [int(experts or 1) * float(size) for experts, size in PARAMETER_COUNT.findall(model.lower())]
    return max(sizes, default=None)
