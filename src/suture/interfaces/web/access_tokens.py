"""The access tokens of callers, stored as hashes, and the four roles of callers."""

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
from suture.errors import StorageError, UsageError, describe_fault
from suture.interfaces.web.tuning import MAX_TOKEN_FILE_BYTES

Role = Literal["viewer", "runner", "reviewer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each role includes the rights of those before it."""
TOKEN_NAME = re.compile(r"[A-Za-z0-9][\w.@-]{0,63}", re.ASCII)
"""The form of a caller's name, which token and caller share."""
TOKEN_PREFIX = "sut_"
"""Lets secret scanners recognize a leaked token."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The caller of a request.

    Attributes:
        name: The name of the token; `local` if no token is required.
        role: The caller's role.
    """

    name: str
    role: Role

    def has_role(self, needed: Role) -> bool:
        """Return whether the caller has at least this role."""
        return ROLES.index(self.role) >= ROLES.index(needed)


LOCAL = Caller(name="local", role="admin")
"""The caller if no token is required: the user of this machine."""


@dataclass(frozen=True, kw_only=True)
class _StoredToken:
    name: str
    role: Role
    sha256: str


class AccessTokens:
    """The tokens of one home, in a file that only its owner can read.

    Args:
        home: The state folder, as the setting `paths.home`.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "serve-tokens.json"

    def add(self, name: str, role: str) -> str:
        """Create a token and return it; only its hash is stored."""
        if not TOKEN_NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a valid token name", remedy="use at most 64 letters, digits and . _ @ -"
            )
        if role not in ROLES:
            raise UsageError(f"there is no role {role!r}", remedy=f"one of: {', '.join(ROLES)}")
        stored_tokens = self._read()
        if any(stored.name == name for stored in stored_tokens) or name == LOCAL.name:
            raise UsageError(
                f"there is already a token named {name!r}",
                remedy=f"remove it: suture serve token remove {name}",
            )
        # A slow hash is not needed: 256 random bits cannot be guessed.
        token = TOKEN_PREFIX + secrets.token_urlsafe(32)
        self._write([*stored_tokens, _StoredToken(name=name, role=_parse_role(role), sha256=_hash(token))])
        return token

    def remove(self, name: str) -> None:
        """Revoke a token."""
        stored_tokens = self._read()
        remaining_tokens = [stored for stored in stored_tokens if stored.name != name]
        if len(remaining_tokens) == len(stored_tokens):
            raise UsageError(f"there is no token named {name!r}", remedy="see `suture serve token list`")
        self._write(remaining_tokens)

    def list_callers(self) -> list[Caller]:
        """Return the callers that have a token."""
        return [Caller(name=stored.name, role=stored.role) for stored in self._read()]

    def find_caller(self, token: str) -> Caller | None:
        """Return the caller with this token, or `None`, in a time that does not depend on the token."""
        caller = None
        token_hash = _hash(token)
        for stored in self._read():  # without an early exit, which would reveal the token's position
            if hmac.compare_digest(stored.sha256, token_hash):
                caller = Caller(name=stored.name, role=stored.role)
        return caller

    def _read(self) -> list[_StoredToken]:
        try:
            content = read_regular_file(self._path, MAX_TOKEN_FILE_BYTES)
            entries = json.loads(content) if content is not None else []
            return [
                _StoredToken(name=entry["name"], role=_parse_role(entry["role"]), sha256=entry["sha256"])
                for entry in entries
            ]
        except (OSError, ValueError, KeyError, TypeError) as fault:
            raise StorageError(
                f"the file of tokens {str(self._path)!r} cannot be read: {describe_fault(fault)}",
                remedy="remove the file and create new tokens",
            ) from fault

    def _write(self, tokens: list[_StoredToken]) -> None:
        write_file_atomically(self._path, json.dumps(list(map(asdict, tokens)), indent=1).encode())


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _parse_role(name: str) -> Role:
    for role in ROLES:
        if role == name:
            return role
    raise ValueError(f"no role {name!r}")
