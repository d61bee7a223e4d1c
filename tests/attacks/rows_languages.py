"""Rows 45 and 46: programs in other languages than Python."""

from __future__ import annotations

import shutil
import textwrap

from attacks.trials import SHORT_S, Row, Trial, World, demand, each, marked, shown
from suture.sandbox import ProgramLimits, RunRequest, RunStatus

__all__ = ["ROWS"]

NODE_MIB = 2048
"""Address space of its own engine: it does not start with less than about 1 GiB."""
COMPILING_S = 60.0
"""Go builds its own library first, as no run finds what an earlier one has built."""


def node(code: str, *statuses: RunStatus, says: str = "", wall_s: float | None = None) -> Trial:
    """Run a program of Node's; nothing that it calls `breach` for may work."""
    whole = 'const FACTS = JSON.parse(require("fs").readFileSync("facts.json"));\n' + textwrap.dedent(code)

    async def trial(world: World) -> None:
        limits = ProgramLimits(
            wall_s=wall_s or world.wall_s,
            cpu_s=30,
            memory_mb=NODE_MIB,
            total_memory_mb=512,
            processes=64,
            disk_mb=32,
        )
        argv = (shutil.which("node") or "", "--max-old-space-size=128", "program.js")
        result = await world.sandbox.run(
            RunRequest(argv=argv, files={**marked(world), "program.js": whole.encode()}, limits=limits)
        )
        demand(b"BREACH" not in result.stdout, shown(result))
        demand(result.status in (statuses or ("ok",)), shown(result))
        demand(says.encode() in result.stdout, shown(result))
        demand(world.ground.token.encode() not in result.stdout, shown(result))

    return trial


def go(files: dict[str, str], *words: str, says: str, status: RunStatus) -> Trial:
    """Run the `go` command on a module of these files."""

    async def trial(world: World) -> None:
        limits = ProgramLimits(
            wall_s=COMPILING_S, cpu_s=60, memory_mb=4096, total_memory_mb=1024, disk_mb=256, processes=128
        )
        laid = {"go.mod": "module attack\n\ngo 1.19\n", **files}
        environment = {
            "GOCACHE": "/tmp/cache",
            "GOPATH": "/tmp/path",
            "GOFLAGS": "-mod=mod",
            "CGO_ENABLED": "0",
            "GOPROXY": "https://proxy.invalid",
        }
        root = shutil.which("go") or ""
        result = await world.sandbox.run(
            RunRequest(
                argv=(root, *words),
                files={**marked(world), **{path: text.encode() for path, text in laid.items()}},
                env=environment,
                limits=limits,
            )
        )
        demand(b"BREACH" not in result.stdout + result.stderr, shown(result))
        demand(result.status == status, shown(result))
        demand(says.encode() in result.stdout + result.stderr, shown(result))

    return trial


REACH = """
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
// Before version 20 the engine aborts without two words more, and answers with them where it might throw.
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
WORKERS = """
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
BUFFERS = "const held = []; for (;;) held.push(Buffer.alloc(1 << 24, 1));"
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
        attack=each(
            node(REACH, says="tried true"),
            node(WORKERS, "signalled", "failed", "memory", says="worker"),
            node(BUFFERS, "signalled", "failed", "memory"),
            node("for (;;);", "timeout", wall_s=SHORT_S),
        ),
        twin=node(
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
        attack=each(
            go({"a_test.go": GO_BOMB}, "test", "./...", says="stopped", status="failed"),
            go(
                {"a.go": 'package attack\n//go:generate sh -c "echo x > /usr/planted && echo BREACH"\n'},
                *("generate", "./..."),
                says="/usr/planted",
                status="failed",
            ),
            go(
                {"a.go": 'package attack\nimport _ "example.com/far/away"\n'},
                *("build", "./..."),
                says="example.com/far/away",
                status="failed",
            ),
        ),
        twin=go({"a_test.go": GO_TEST}, "test", "./...", says="ok", status="ok"),
        needs="go",
        slow="it compiles",
    ),
)
