"""Rows 45 and 46: programs in languages other than Python."""

from __future__ import annotations

import shutil
import textwrap

from attacks.trials import (
    SHORT_TIMEOUT_S,
    AttackContext,
    Row,
    Trial,
    check,
    describe_result,
    in_sequence,
    make_facts_file,
)
from suture.sandbox import ProgramLimits, RunRequest, RunStatus

__all__ = ["ROWS"]

NODE_MEMORY_MIB = 2048
"""The address space of Node, which does not start with less than about 1 GiB."""
GO_TIMEOUT_S = 60.0
"""Long enough for Go to build its standard library, because no run finds the cache of an earlier one."""


def run_node(code: str, *statuses: RunStatus, says: str = "", wall_s: float | None = None) -> Trial:
    """Return a trial that runs a Node program, which prints `BREACH` if an attack succeeds."""
    full_code = 'const FACTS = JSON.parse(require("fs").readFileSync("facts.json"));\n' + textwrap.dedent(
        code
    )

    async def trial(context: AttackContext) -> None:
        limits = ProgramLimits(
            wall_s=wall_s or context.wall_s,
            cpu_s=30,
            memory_mb=NODE_MEMORY_MIB,
            total_memory_mb=512,
            processes=64,
            disk_mb=32,
        )
        argv = (shutil.which("node") or "", "--max-old-space-size=128", "program.js")
        result = await context.sandbox.run(
            RunRequest(
                argv=argv, files={**make_facts_file(context), "program.js": full_code.encode()}, limits=limits
            )
        )
        check(b"BREACH" not in result.stdout, describe_result(result))
        check(result.status in (statuses or ("ok",)), describe_result(result))
        check(says.encode() in result.stdout, describe_result(result))
        check(context.bait.token.encode() not in result.stdout, describe_result(result))

    return trial


def run_go(files: dict[str, str], *arguments: str, says: str, status: RunStatus) -> Trial:
    """Return a trial that runs the `go` command on a module of these files."""

    async def trial(context: AttackContext) -> None:
        limits = ProgramLimits(
            wall_s=GO_TIMEOUT_S, cpu_s=60, memory_mb=4096, total_memory_mb=1024, disk_mb=256, processes=128
        )
        module_files = {"go.mod": "module attack\n\ngo 1.19\n", **files}
        environment = {
            "GOCACHE": "/tmp/cache",
            "GOPATH": "/tmp/path",
            "GOFLAGS": "-mod=mod",
            "CGO_ENABLED": "0",
            "GOPROXY": "https://proxy.invalid",
        }
        go_path = shutil.which("go") or ""
        result = await context.sandbox.run(
            RunRequest(
                argv=(go_path, *arguments),
                files={
                    **make_facts_file(context),
                    **{path: text.encode() for path, text in module_files.items()},
                },
                env=environment,
                limits=limits,
            )
        )
        check(b"BREACH" not in result.stdout + result.stderr, describe_result(result))
        check(result.status == status, describe_result(result))
        check(says.encode() in result.stdout + result.stderr, describe_result(result))

    return trial


NODE_ATTACK = """
const fs = require("fs"), child = require("child_process"), net = require("net");
let tried = 0;
function attempt(name, action) {
    tried++;
    try { const made = action(); console.log("BREACH", name, String(made).slice(0, 200)); } catch {}
}
for (const path of [...FACTS.secrets, "/etc/shadow"]) attempt(path, () => fs.readFileSync(path));
for (const folder of ["/", "/usr", "/etc", FACTS.folder])
    attempt(folder, () => fs.writeFileSync(folder + "/" + FACTS.token, "x"));
attempt("require", () => require(FACTS.secrets[0]));
attempt("list", () => fs.readdirSync(FACTS.folder));
attempt("kill", () => process.kill(FACTS.victim, 9));
attempt("setuid", () => process.setuid(0));
attempt("shell", () => child.execSync("cat " + FACTS.secrets[0], { stdio: "pipe" }));
// Before version 20, Node aborts without two more arguments, and with them it returns an error instead of throwing.
const more = parseInt(process.versions.node) < 20 ? [undefined, {}] : [];
attempt("binding", () => {
    const made = process.binding("fs").open(FACTS.secrets[0], 0, 0, ...more);
    if (!(made >= 0)) throw made;
    return made;
});
if (JSON.stringify(process.env).includes(FACTS.token)) console.log("BREACH env");
const client = net.connect(FACTS.tcp, "127.0.0.1");
client.on("connect", () => console.log("BREACH connect"));
client.on("error", () => console.log("tried", tried > 10));
"""
NODE_WORKERS = """
const fs = require("fs"), { Worker } = require("worker_threads");
let made = 0;
function more() {
    const worker = new Worker("setInterval(() => 0, 1000)", { eval: true });
    worker.on("error", () => process.exit(3)).on("online", more);
    fs.writeSync(1, "worker\\n");
    if (++made > 500) console.log("BREACH");
}
more();
"""
NODE_BUFFERS = "const held = []; for (;;) held.push(Buffer.alloc(1 << 24, 1));"
GO_TEST = 'package attack\nimport "testing"\nfunc TestIt(t *testing.T) {}\n'
GO_BOMB = """package attack
import ("os"; "os/exec"; "testing")
func init() {
    for n := 0; n < 5000; n++ {
        if exec.Command("/bin/sleep", "600").Start() != nil {
            os.Stdout.WriteString("stopped\\n")
            os.Exit(3)
        }
    }
    os.Stdout.WriteString("BREACH\\n")
}
func TestIt(t *testing.T) {}
"""

ROWS = (
    Row(
        number=45,
        attempt="the same from Node: files, programs, workers, buffers, the engine's own bindings",
        attack=in_sequence(
            run_node(NODE_ATTACK, says="tried true"),
            run_node(NODE_WORKERS, "signalled", "failed", "memory", says="worker"),
            run_node(NODE_BUFFERS, "signalled", "failed", "memory"),
            run_node("for (;;);", "timeout", wall_s=SHORT_TIMEOUT_S),
        ),
        twin=run_node(
            """
            const child = require("child_process");
            require("fs").writeFileSync("/tmp/x", "fi");
            console.log(require("fs").readFileSync("/tmp/x") + child.execSync("echo ne"));
        """,
            says="fine",
        ),
        needs="node",
        slow="its engine takes up to a second to start, and some more to die of too much",
    ),
    Row(
        number=46,
        attempt="the same from Go: at the start of a test, while generating, through downloads",
        attack=in_sequence(
            run_go({"a_test.go": GO_BOMB}, "test", "./...", says="stopped", status="failed"),
            run_go(
                {"a.go": 'package attack\n//go:generate sh -c "echo x > /usr/planted && echo BREACH"\n'},
                "generate",
                "./...",
                says="/usr/planted",
                status="failed",
            ),
            run_go(
                {"a.go": 'package attack\nimport _ "example.com/far/away"\n'},
                "build",
                "./...",
                says="example.com/far/away",
                status="failed",
            ),
        ),
        twin=run_go({"a_test.go": GO_TEST}, "test", "./...", says="ok", status="ok"),
        needs="go",
        slow="it compiles",
    ),
)
