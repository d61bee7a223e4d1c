"""The MCP server: its tools, its resources, and its transports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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

from suture.core.safe_files import read_state_file
from suture.core.settings import Settings
from suture.core.settings.rendering import describe_invalid_value
from suture.errors import SutureError, UsageError
from suture.interfaces.jobs.project_sources import require_sandbox
from suture.interfaces.mcp.mcp_tools import add_tools, find_judgement, find_requested_run, read_run_diff
from suture.interfaces.mcp.server_context import ServerContext
from suture.interfaces.narrative.run_list import list_summary_rows
from suture.interfaces.narrative.run_story import run_as_json
from suture.judge.certificates import find_certificate

INSTRUCTIONS = (
    "Suture repairs and writes code in a sandbox until trusted tests pass. `heal` returns a verified diff "
    "and changes no files. `judge` says whether a change, yours or anybody's, is accepted, and why not: call it "
    "before you say that you are done. A run that waits or was interrupted stays on disk: see `show`."
)
MAX_LISTED_RUNS = 50
"""Runs that the resource of runs lists, the newest ones. Chosen by judgement; not measured."""
MAX_CERTIFICATE_BYTES = 64 * 2**20
"""The largest certificate that is sent. Chosen by judgement; not measured."""
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


class _SutureMCPServer(MCPServer[Any]):
    """The SDK's server, with error messages of one line and a remedy."""

    async def list_tools(self) -> list[Tool]:
        """Return the tools with cleaned descriptions; the SDK keeps the indentation of docstrings."""
        tools = await super().list_tools()
        return [tool.model_copy(update={"description": cleandoc(tool.description or "")}) for tool in tools]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Unknown arguments are errors, because the client expects them to have an effect."""
        tools = {tool.name: tool for tool in await self.list_tools()}
        if name not in tools:
            raise ToolError(f"there is no tool {name!r:.80}; try: {', '.join(tools)}")
        properties: dict[str, Any] = tools[name].input_schema["properties"]
        for unknown in arguments.keys() - properties.keys():
            suggestions = get_close_matches(unknown, properties, n=1) or properties
            raise ToolError(f"{name} has no argument {unknown!r:.80}; try: {', '.join(suggestions)}")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as fault:
            if isinstance(fault.__cause__, ValidationError):
                raise ToolError(_argument_error(name, fault.__cause__, properties)) from fault
            if type(fault.__cause__) is ToolError:  # the SDK wraps errors of tools in one with a prefix
                raise fault.__cause__ from None  # without the SDK's prefix
            raise


def _argument_error(tool: str, fault: ValidationError, properties: Mapping[str, Any]) -> str:
    """Return the first error in a call's arguments, with the argument's description."""
    error = fault.errors()[0]
    name = str(error["loc"][0])
    if error["type"] == "missing":
        message = f"the argument {name!r} is missing"
    else:
        message = describe_invalid_value(name, {**error}, error["input"])
    return f"{tool}: {message}; try: {name}: {properties.get(name, {}).get('description', '')}"


def make_server(context: ServerContext) -> MCPServer[Any]:
    """Return a server with all tools and resources."""
    server = _SutureMCPServer(
        "suture", version=version("suture"), instructions=INSTRUCTIONS, log_level="WARNING"
    )
    add_tools(server, context)
    _add_resources(server, context)
    return server


def serve_mcp(
    settings: Settings, flags: Mapping[str, object], roots: tuple[Path, ...], *, http: tuple[str, int] | None
) -> None:
    """Communicate with a client until it disconnects.

    Args:
        flags: The settings from its command line.
        roots: Folders in which projects may be healed if the client names none of its own.
        http: (host, port) to listen on; with `None`, stdin and stdout are used.

    Raises:
        UsageError: The settings disable the sandbox, or others could reach the address.
    """
    require_sandbox(settings)
    server = make_server(ServerContext(settings=settings, flags=flags, roots=roots))
    if http is None:
        server.run("stdio")
        return
    host, port = http
    if host not in LOOPBACK_HOSTS:
        raise UsageError(
            f"others could reach {host!r}, and the MCP server does not check tokens",
            remedy="leave out --host, or use `suture serve` for other callers",
        )
    server.run("streamable-http", host=host, port=port)


def _add_resources(server: MCPServer[Any], context: ServerContext) -> None:
    @server.resource("suture://runs", mime_type="application/json")
    def runs() -> str:
        """The newest runs: id, state, tokens, and the first line of the task."""
        names = ("run", "state", "spent", "task")
        rows = list_summary_rows(context.settings, MAX_LISTED_RUNS)
        return json.dumps([dict(zip(names, row, strict=True)) for row in rows])

    @server.resource("suture://runs/{run}", mime_type="application/json")
    def one_run(run: str) -> str:
        """A run with its whole ledger."""
        return json.dumps(_read_resource(lambda: run_as_json(find_requested_run(context, run))))

    @server.resource("suture://runs/{run}/diff", mime_type="text/x-diff")
    def diff(run: str) -> str:
        """The diff of a run."""
        return str(_read_resource(lambda: read_run_diff(find_requested_run(context, run))))

    @server.resource("suture://runs/{run}/certificate", mime_type="application/json")
    def certificate(run: str) -> str:
        """The certificate of a healed run."""
        return _read_certificate(
            lambda: find_certificate(find_requested_run(context, run).path, context.home)
        )

    @server.resource("suture://judgements/{judgement}/certificate", mime_type="application/json")
    def judgement_certificate(judgement: str) -> str:
        """The certificate of a judgement."""

        def find() -> Path:
            path = find_judgement(context, judgement)
            if path is None:
                raise UsageError(
                    f"no certificate of a judgement {judgement!r:.80} is kept here",
                    remedy="call `judge` with `certificate`",
                )
            return path

        return _read_certificate(find)


def _read_certificate(find: Callable[[], Path]) -> str:
    def read() -> str:
        content = read_state_file(find(), MAX_CERTIFICATE_BYTES, "the certificate", follow=False)
        return content.decode("ascii")

    return str(_read_resource(read))


def _read_resource(read: Callable[[], Any]) -> Any:
    """Return what a function reads; an error becomes the SDK's error for a missing resource."""
    try:
        return read()
    except (SutureError, ToolError) as fault:
        raise ResourceNotFoundError(str(fault)) from fault
