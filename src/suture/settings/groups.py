"""What the groups of settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["Group"]


class Group(BaseModel):
    """What all groups share: immutable, unknown keys refused, documented by docstrings."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
