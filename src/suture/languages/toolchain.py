"""What programs of another language than Python are to us: where they lie, what they need behind the wall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from suture.records import Language


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """One installation of a language's programs.

    Attributes:
        language: The language that its programs belong to.
        program: Absolute path of `node` or `go`, as PATH names it.
        folders: Where the language's programs are looked for, before the system's.
        shown: What must be shown behind the wall: path here -> path there.
        variables: Environment variables behind the wall.
    """

    language: Language
    program: str
    folders: tuple[str, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
