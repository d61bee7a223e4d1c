"""The server: its tools, its resources, and how it talks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from suture.errors import SutureError, UsageError
from suture.jobs.work import require_wall
from suture.ledger import list_runs
from suture.mcp.door import Door
from suture.mcp.telling import diff_of
from suture.mcp.tools import add_tools, found
from suture.narrative.story import run_as_json, summary_row
from suture.plain_files import read_stored
from suture.proof import certificate_path
from suture.settings import Settings

INSTRUCTIONS = (
    "Suture repairs and writes code in a sandbox until tests that can be trusted pass. `heal` answers a "
    "verified diff and changes nothing itself; a run that waits, or was cut off, stays on disk: see `show`."
)
MOST_LISTED = 50
MOST_CERTIFICATE_BYTES = 64 * 2**20
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def make_server(door: Door) -> MCPServer[Any]:
    """A server with all its tools and resources."""
    server: MCPServer[Any] = MCPServer(
        "suture", version=version("suture"), instructions=INSTRUCTIONS, log_level="WARNING"
    )
    add_tools(server, door)
    _add_resources(server, door)
    return server


def serve(
    settings: Settings, flags: Mapping[str, object], roots: tuple[Path, ...], *, http: tuple[str, int] | None
) -> None:
    """Talk to a client until it goes away.

    Args:
        settings: The server's own.
        flags: Those of them that were said on the command line.
        roots: As in `Door`.
        http: Address and port to listen at; stdin and stdout where not given.

    Raises:
        UsageError: There would be no sandbox, or the address is one that others reach.
    """
    require_wall(settings)
    server = make_server(Door(settings=settings, flags=flags, roots=roots))
    if http is None:
        server.run("stdio")
        return
    host, port = http
    if host not in LOOPBACK:
        raise UsageError(
            f"at {host!r} others can reach it, and this protocol's server here asks for no token",
            remedy="leave out --host; for others there is `suture serve`",
        )
    server.run("streamable-http", host=host, port=port)


def _add_resources(server: MCPServer[Any], door: Door) -> None:
    @server.resource("suture://runs", mime_type="application/json")
    def runs() -> str:
        """The newest runs: id, how each stands, tokens, the first line of its task."""
        newest = reversed(list_runs(door.home)[-MOST_LISTED:])
        rows = [dict(zip(("run", "state", "spent", "task"), summary_row(run), strict=True)) for run in newest]
        return json.dumps(rows)

    @server.resource("suture://runs/{run}", mime_type="application/json")
    def one_run(run: str) -> str:
        """A run with its whole ledger."""
        return json.dumps(_told(lambda: run_as_json(found(door, run))))

    @server.resource("suture://runs/{run}/diff", mime_type="text/x-diff")
    def diff(run: str) -> str:
        """A run's diff."""
        return str(_told(lambda: diff_of(found(door, run))))

    @server.resource("suture://runs/{run}/certificate", mime_type="application/json")
    def certificate(run: str) -> str:
        """The certificate of a healed run."""

        def read() -> str:
            path = certificate_path(found(door, run).path, door.home)
            return read_stored(path, MOST_CERTIFICATE_BYTES, "the certificate", follow=False).decode("ascii")

        return str(_told(read))


def _told(read: Any) -> Any:
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        return read()
    except (SutureError, ToolError) as fault:
        raise ResourceNotFoundError(str(fault)) from fault
