"""What a package manager's client is to us, and how one is run."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from suture.errors import PrerequisiteError

LIMIT_S = 300.0
MOST_SAID = 600
NO_CLIENT = "No module named pip"
SECRET = re.compile(r"_API_KEY$|^SUTURE_|DATABASE_URL$")
ADDRESS = re.compile(r"\b[a-z+]+://\S+|\bhost='[^']*'")
"""What a client says may name the index, and with it a password."""


class PackagesRefused(Exception):
    """What a project asks for cannot be had; whoever wrote it can ask for something else.

    Args:
        why: In a line or two, for the coder.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, kw_only=True)
class Installed:
    """Packages that lie ready.

    Attributes:
        folder: Holds them, to be shown behind the wall.
        path: Where their lock belongs in the project.
        lock: Its text: each package with its version and hash.
        names: Each with its version, in order.
    """

    folder: Path
    path: str
    lock: str
    names: tuple[str, ...]


class Installer(Protocol):
    """One package manager. Nothing that it fetches is run."""

    manifest: str
    """The file of a project that asks for packages."""
    lock: str
    """The file that says which they are."""
    folder: str
    """What `install` makes in its place."""

    def wanted(self, manifest: str) -> tuple[str, ...]:
        """What a manifest asks for, in order; each safe to hand to the client.

        Raises:
            PackagesRefused: It asks for what is not installed: an address, a path, another manifest.
        """
        ...

    async def resolve(self, wanted: Sequence[str], place: Path, python: str) -> str:
        """The lock of all that is needed.

        Args:
            wanted: As `wanted` reads it.
            place: An empty folder, which may be filled.
            python: Version `X.Y` of the Python that will import it.

        Raises:
            PackagesRefused: There is no such package, or no such version.
            PrerequisiteError: The client is not there, or the index cannot be reached.
        """
        ...

    async def install(self, wanted: Sequence[str], lock: str, place: Path, python: str) -> None:
        """Lay what `resolve` locked in the same place into `place / folder`, each checked by its hash.

        Raises:
            PackagesRefused: It takes the place of what decides, such as a module of Python's own.
            PrerequisiteError: The client is not there, or the index cannot be reached.
        """
        ...

    def names(self, lock: str, place: Path) -> tuple[str, ...]:
        """The packages of a lock that lie in a folder, each with its version."""
        ...


async def run_client(client: str, argv: Sequence[str], place: Path, unreachable: re.Pattern[str]) -> None:
    """Run a package manager's client in a folder of ours, with the user's own settings of it.

    Args:
        client: Its name, for messages.
        argv: Its program and its arguments.
        place: Its working directory; no file of a project lies there.
        unreachable: What it says where the index cannot be reached.

    Raises:
        PackagesRefused: It ended with an error; the message quotes it without addresses.
        PrerequisiteError: It is not there, ended too late, or could not reach its index.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=place,
            env={**_environment(), "TMPDIR": str(place), "PIP_USER": "0"},  # it excludes `--target`
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as fault:
        raise PrerequisiteError(
            f"packages are fetched by {client}, which cannot be started: {fault.strerror}",
            remedy=f"install {client}, or leave packages out with --approve-deps never",
        ) from fault
    try:
        async with asyncio.timeout(LIMIT_S):
            said, _ = await process.communicate()
    except TimeoutError as fault:
        raise _out_of_reach(client, f"no end within {LIMIT_S:.0f} s") from fault
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    text = said.decode("utf-8", "replace")
    if NO_CLIENT in text:
        raise PrerequisiteError(
            f"packages are fetched by {client}, which is not there: {NO_CLIENT}",
            remedy=f"install {client}, or leave packages out with --approve-deps never",
        )
    if process.returncode:
        lines = [ADDRESS.sub("<address>", line.strip()) for line in text.splitlines() if line.strip()]
        if unreachable.search(text):
            line = next((line for line in lines if unreachable.search(line)), lines[-1])
            raise _out_of_reach(client, line[:MOST_SAID])
        raise PackagesRefused(" / ".join(lines)[:MOST_SAID] or f"{client} ended with {process.returncode}")


def _environment() -> dict[str, str]:
    """The user's, without the keys of models and the database's address: what a client says may quote it."""
    return {name: value for name, value in os.environ.items() if not SECRET.search(name)}


def _out_of_reach(client: str, said: str) -> PrerequisiteError:
    return PrerequisiteError(
        f"packages cannot be fetched: {client} does not reach its index: {said}",
        remedy=f"check the network and {client}'s settings, or leave packages out with --approve-deps never",
    )
