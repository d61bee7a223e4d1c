"""Who may do what: tokens of callers, kept as hashes, and the four roles."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from suture.core.safe_files import read_regular_file, write_file_atomically
from suture.errors import StorageError, UsageError

Role = Literal["viewer", "runner", "reviewer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
NAME = re.compile(r"[A-Za-z0-9][\w.@-]{0,63}", re.ASCII)
MOST_BYTES = 2**20
PREFIX = "sut_"
"""By it scanners of secrets know a token where one was left lying about."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who asks.

    Attributes:
        name: As the token was called; `local` where none is asked for.
        role: What they may do.
    """

    name: str
    role: Role

    def may(self, needed: Role) -> bool:
        """Whether they may do what this role may."""
        return ROLES.index(self.role) >= ROLES.index(needed)


LOCAL = Caller(name="local", role="admin")
"""Who asks where no token is asked for: the user of this machine."""


@dataclass(frozen=True, kw_only=True)
class _Kept:
    name: str
    role: Role
    sha256: str


class AccessTokens:
    """The tokens of one home, in a file that only its owner can read.

    Args:
        home: The folder of state, as the setting `paths.home`.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "serve-tokens.json"

    def add(self, name: str, role: str) -> str:
        """Make a token; it is told once and kept as a hash alone.

        Raises:
            UsageError: The name is none or taken, or there is no such role.
            StorageError: The file cannot be read or written.
        """
        if not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is no name of a token", remedy="letters, digits and . _ @ -, 64 at most"
            )
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}", remedy=f"one of: {', '.join(ROLES)}")
        kept = self._read()
        if any(one.name == name for one in kept) or name == LOCAL.name:
            raise UsageError(
                f"there is a token called {name!r} already",
                remedy=f"remove it: suture serve token remove {name}",
            )
        # 256 random bits need no slow hash: nobody can guess them.
        token = PREFIX + secrets.token_urlsafe(32)
        self._write([*kept, _Kept(name=name, role=_role(role), sha256=_hash(token))])
        return token

    def remove(self, name: str) -> None:
        """Take a token back.

        Raises:
            UsageError: There is none of this name.
        """
        kept = self._read()
        left = [one for one in kept if one.name != name]
        if len(left) == len(kept):
            raise UsageError(f"there is no token called {name!r}", remedy="see `suture serve token list`")
        self._write(left)

    def callers(self) -> list[Caller]:
        """Whose tokens there are."""
        return [Caller(name=one.name, role=one.role) for one in self._read()]

    def caller_of(self, token: str) -> Caller | None:
        """Whose token this is; `None` where it is nobody's. It takes as long whichever it is."""
        found = None
        given = _hash(token)
        for one in self._read():
            if hmac.compare_digest(one.sha256, given):
                found = Caller(name=one.name, role=one.role)
        return found

    def _read(self) -> list[_Kept]:
        try:
            content = read_regular_file(self._path, MOST_BYTES)
            plain = json.loads(content) if content is not None else []
            return [_Kept(name=one["name"], role=_role(one["role"]), sha256=one["sha256"]) for one in plain]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise StorageError(
                f"the file of tokens {str(self._path)!r} cannot be read: {fault}", remedy="make them anew"
            ) from fault

    def _write(self, kept: list[_Kept]) -> None:
        text = json.dumps([asdict(one) for one in kept], indent=1)
        write_file_atomically(self._path, text.encode())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _role(name: str) -> Role:
    for role in ROLES:
        if role == name:
            return role
    raise ValueError(f"no role {name!r}")
