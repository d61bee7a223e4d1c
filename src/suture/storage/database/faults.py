"""What a database refuses, as one line and a remedy."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import exc

from suture.errors import StorageError

FULL = ("disk is full", "No space left", "disk I/O error", "could not extend file")
LOCKED = ("database is locked", "lock timeout")
NO_EXTENSION = ('extension "vector"',)
NO_DATABASE = ("file is not a database", "malformed")


@contextlib.contextmanager
def mapped(where: str) -> Iterator[None]:
    """Turn the database's own errors into one of ours.

    Args:
        where: The database, for people; without a password.

    Raises:
        StorageError: Anything that the engine or its driver raised.
    """
    try:
        yield
    except (exc.SQLAlchemyError, UnicodeError) as fault:
        said = str(getattr(fault, "orig", None) or fault).strip().splitlines()
        reason = said[0] if said else type(fault).__name__
        raise StorageError(f"the database {where} failed: {reason}", remedy=_remedy(fault, reason)) from fault


def _remedy(fault: Exception, reason: str) -> str:
    if any(sign in reason for sign in FULL):
        return "free some disk space; `suture db rebuild` makes up for what is missing"
    if any(sign in reason for sign in LOCKED):
        return "another process holds it; wait for it to end"
    if any(sign in reason for sign in NO_DATABASE):
        return "move the file away: `suture db rebuild` makes it anew from the runs"
    if any(sign in reason for sign in NO_EXTENSION):
        return (
            "install pgvector there, and have its administrator run `CREATE EXTENSION vector` in the database"
        )
    if isinstance(fault, (exc.OperationalError, exc.InterfaceError)) or _was_lost(fault):
        return "see that it runs and that store.url is right; runs keep their ledgers without it"
    return "see `suture db check`; runs keep their ledgers without it"


def _was_lost(fault: Exception) -> bool:
    return isinstance(fault, exc.DBAPIError) and fault.connection_invalidated
