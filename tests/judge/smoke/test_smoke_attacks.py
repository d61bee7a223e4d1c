"""Projects that try to pass their smoke checks without working."""

from __future__ import annotations

import asyncio
import sys

import pytest

from suture.core.records import ProjectKind
from suture.core.settings import SandboxSettings
from suture.judge.runners.command_line import CommandRun
from suture.judge.smoke.smoke_plan import SmokeChecks
from suture.loop.intake.project_task import ProjectRequest, build_project_task
from suture.sandbox import Sandbox, discover_interpreter

PYTHON = discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})
WEB_TASK = 'A server.\n\nGET /one -> 200 {"id": 1}\n'
CLI_TASK = "A CLI.\n\n    $ tool one\n    1\n"
SERVER = """
import http.server, json, os, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    body = {body}
    def do_GET(self):
        good = self.path == "/"
        self.send_response(200 if good else {status})
        self.end_headers()
        self.wfile.write(self.body)
        {then}
    def log_message(self, *words): pass
def serve(address={address}):
    server = http.server.HTTPServer
    if ":" in address:
        import socket
        server = type("Six", (server,), dict(address_family=socket.AF_INET6))
    server((address, int(os.environ["PORT"])), Handler).serve_forever()
if __name__ == "__main__":
    serve()
"""
FORGE = """
import glob, json
lines = [f'{"0" * 64} {n} ' + json.dumps(dict(id=i, fact={})) for n, i in enumerate(
    ["it builds: python -m compileall -q NAME", "it answers GET /", "as the task shows: GET /one -> 200 (1)",
     "it prints something for --help", "it runs without arguments", "as the task shows: tool one (1)"])]
for report in glob.glob("/box/_suture/*report*"):
    open(report, MODE).write("\\n".join([*lines, f'{"0" * 64} 6 ' + json.dumps(dict(end=True))]) + "\\n")
"""
KEY = """
import glob, os, re
for place in (f"/proc/{os.getppid()}/mem", f"/proc/{os.getppid()}/environ", f"/proc/{os.getppid()}/fd/0"):
    try:
        text = open(place, "rb").read()
    except OSError:
        continue
    if b'"key"' in text:
        print(1)
"""
CHILD = """
import os, time
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 3)
    for _ in range(600):
        time.sleep(0.05)
        BODY
    os._exit(0)
"""
SWAP = CHILD.replace(
    "BODY",
    """
        for n in range(1, 4):
            try:
                open(f"/tmp/place-{n}/said.out", "w").write("1\\\\n")
            except OSError:
                pass
""".strip(),
)
LOUD = """
import json, sys
for stream in (sys.stdout, sys.stderr):
    print("0" * 64, 5, json.dumps(dict(id="as the task shows: tool one (1)", fact={})), file=stream)
    print("0" * 64, 6, json.dumps(dict(end=True)), file=stream)
"""
TOOL = "import sys\nprint('usage' if sys.argv[1:] != ['one'] else {shown!r})\n"


def make_server(
    *, body: str = "b'{\"id\": 2}'", status: int = 200, then: str = "pass", address: str = "127.0.0.1"
) -> str:
    text = SERVER.replace("{body}", body).replace("{status}", str(status)).replace("{then}", then)
    return text.replace("{address}", repr(address))


def make_forgery(mode: str) -> str:
    return FORGE.replace("MODE", repr(mode))


ATTACKS: dict[str, tuple[ProjectKind, str]] = {
    "answers with forged lines": ("web_app", make_server(body="b'0 4 {\"fact\": {}}'", status=500)),
    "writes into the report while it serves": ("web_app", make_forgery("a") + make_server()),
    "replaces the report while it serves": ("web_app", make_forgery("w") + make_server()),
    "listens at another address": ("web_app", make_server(body="b'{\"id\": 1}'", address="::1")),
    "answers and ends": ("web_app", make_server(then="os._exit(0)")),
    "prints the driver's lines": ("cli_tool", LOUD + TOOL.format(shown="2")),
    "writes into the report": ("cli_tool", make_forgery("a") + TOOL.format(shown="2")),
    "looks for the key in its parent": ("cli_tool", KEY + TOOL.format(shown="2")),
    "kills every process it can": ("cli_tool", "import os, signal\nos.kill(-1, signal.SIGKILL)\n"),
    "kills its parent": ("cli_tool", "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"),
    "leaves a process that rewrites the output": ("cli_tool", SWAP + TOOL.format(shown="2")),
}
HONEST: dict[str, tuple[ProjectKind, str]] = {
    "a server": ("web_app", make_server(body="b'{\"id\": 1}'")),
    "a server at every address": ("web_app", make_server(body="b'{\"id\": 1}'", address="0.0.0.0")),
    "a tool": ("cli_tool", TOOL.format(shown="1")),
}


async def run_smoke_checks(
    kind: ProjectKind, text: str, sandbox: Sandbox, settings: SandboxSettings
) -> CommandRun:
    task = build_project_task(WEB_TASK if kind == "web_app" else CLI_TASK, ProjectRequest(kind=kind))
    smoke = SmokeChecks(task=task, sandbox=sandbox, settings=settings, interpreter=PYTHON)
    program = text.replace("NAME", task.project.name if task.project else "")
    return await smoke.run({**task.files, task.module: program.encode()})


@pytest.mark.heavy
@pytest.mark.timeout(240)  # a dozen projects, each started a few times
async def test_no_forged_smoke_check_passes(sandbox: Sandbox, sandbox_settings: SandboxSettings) -> None:
    gate = asyncio.Semaphore(2)
    short_settings = sandbox_settings.model_copy(update={"test_timeout_s": 25})

    async def find_failed_checks(kind: ProjectKind, text: str) -> list[str]:
        async with gate:
            run = await run_smoke_checks(kind, text, sandbox, short_settings)
        return [outcome.check_id for outcome in run.outcomes if not outcome.passed]

    programs = {**ATTACKS, **HONEST}

    failed = dict(
        zip(
            programs,
            await asyncio.gather(*(find_failed_checks(*arguments) for arguments in programs.values())),
            strict=True,
        )
    )

    assert {name: failed[name] for name in HONEST if failed[name]} == {}
    assert [name for name in ATTACKS if not failed[name]] == []
