"""The server: its tools, its resources, and how it talks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import CallToolResult, InputRequiredResult, Tool
from pydantic import ValidationError

from suture.core.ledger import list_runs
from suture.core.safe_files import read_stored
from suture.core.settings import Settings
from suture.core.settings.rendering import say_refusal
from suture.errors import SutureError, UsageError
from suture.interfaces.jobs.job_execution import require_sandbox
from suture.interfaces.mcp.mcp_tools import add_tools, find_requested_run, read_run_diff
from suture.interfaces.mcp.server_context import ServerContext
from suture.interfaces.narrative.run_story import run_as_json, run_summary_row
from suture.judge.certificates import find_certificate

INSTRUCTIONS = (
    "Suture repairs and writes code in a sandbox until tests that can be trusted pass. `heal` answers a "
    "verified diff and changes nothing itself; a run that waits, or was cut off, stays on disk: see `show`."
)
MOST_LISTED = 50
MOST_CERTIFICATE_BYTES = 64 * 2**20
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class _Server(MCPServer[Any]):
    """The SDK's, with what it refuses said as every other fault: one line, and what to do."""

    async def list_tools(self) -> list[Tool]:
        """The tools; the SDK leaves a docstring's lines as they are indented in the source."""
        tools = await super().list_tools()
        return [one.model_copy(update={"description": cleandoc(one.description or "")}) for one in tools]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. An argument that it does not have is refused: it was meant to change something.

        Raises:
            ToolError: There is no such tool, an argument is wrong, or the tool itself raises it.
        """
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise ToolError(f"there is no tool {name!r:.80}; try: {', '.join(tools)}")
        known: dict[str, Any] = tools[name].input_schema["properties"]
        for stray in arguments.keys() - known.keys():
            near = get_close_matches(stray, known, n=1) or known
            raise ToolError(f"{name} has no argument {stray!r:.80}; try: {', '.join(near)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as fault:
            if isinstance(fault.__cause__, ValidationError):
                raise ToolError(_said(name, fault.__cause__, known)) from fault
            if type(fault.__cause__) is ToolError:
                raise fault.__cause__ from None  # in our words, without the SDK's before them
            raise


def _said(tool: str, fault: ValidationError, known: Mapping[str, Any]) -> str:
    """The first of what is wrong with a call's arguments, and what the argument is for."""
    error = fault.errors()[0]
    name = str(error["loc"][0])
    missing = error["type"] == "missing"
    said = f"the argument {name!r} is missing" if missing else say_refusal(name, {**error}, error["input"])
    return f"{tool}: {said}; try: {name}: {known.get(name, {}).get('description', '')}"


def make_server(door: ServerContext) -> MCPServer[Any]:
    """A server with all its tools and resources."""
    server = _Server("suture", version=version("suture"), instructions=INSTRUCTIONS, log_level="WARNING")
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
        roots: As in `ServerContext`.
        http: Address and port to listen at; stdin and stdout where not given.

    Raises:
        UsageError: There would be no sandbox, or the address is one that others reach.
    """
    require_sandbox(settings)
    server = make_server(ServerContext(settings=settings, flags=flags, roots=roots))
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


def _add_resources(server: MCPServer[Any], door: ServerContext) -> None:
    @server.resource("suture://runs", mime_type="application/json")
    def runs() -> str:
        """The newest runs: id, how each stands, tokens, the first line of its task."""
        newest = reversed(list_runs(door.home)[-MOST_LISTED:])
        rows = [
            dict(zip(("run", "state", "spent", "task"), run_summary_row(run), strict=True)) for run in newest
        ]
        return json.dumps(rows)

    @server.resource("suture://runs/{run}", mime_type="application/json")
    def one_run(run: str) -> str:
        """A run with its whole ledger."""
        return json.dumps(_told(lambda: run_as_json(find_requested_run(door, run))))

    @server.resource("suture://runs/{run}/diff", mime_type="text/x-diff")
    def diff(run: str) -> str:
        """A run's diff."""
        return str(_told(lambda: read_run_diff(find_requested_run(door, run))))

    @server.resource("suture://runs/{run}/certificate", mime_type="application/json")
    def certificate(run: str) -> str:
        """The certificate of a healed run."""

        def read() -> str:
            path = find_certificate(find_requested_run(door, run).path, door.home)
            return read_stored(path, MOST_CERTIFICATE_BYTES, "the certificate", follow=False).decode("ascii")

        return str(_told(read))


def _told(read: Any) -> Any:
    try:
        return read()
    except (SutureError, ToolError) as fault:
        raise ResourceNotFoundError(str(fault)) from fault
