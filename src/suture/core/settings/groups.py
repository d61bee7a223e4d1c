"""What the groups of settings have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class NamesAFile:
    """The mark of a setting that is a text, and may name a file.

    Attributes:
        kind: By which rule: a `recipe` that ends in `.toml`, or a `model` such as `scripted:FILE`.
    """

    kind: Literal["recipe", "model"]


class Group(BaseModel):
    """What all groups share: immutable, unknown keys refused, documented by docstrings under the fields.

    A validator is compiled when it is first used, which for most is never: `Settings` holds them all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
