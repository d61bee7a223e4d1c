"""System calls that namespaces alone do not refuse, and those that ordinary programs need."""

from __future__ import annotations

import json
import os
import textwrap

import pytest

from sandbox.sandbox_programs import python_request
from suture.sandbox import BubblewrapSandbox, RunRequest

CALL = textwrap.dedent("""
    import ctypes, errno, json, os, socket, sys
    libc = ctypes.CDLL(None, use_errno=True)
    def call(number, *args):
        ctypes.set_errno(0)
        answer = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, args))
        return errno.errorcode[ctypes.get_errno()] if answer == -1 else answer
    def open_socket(*args):
        try: socket.socket(*args).close()
        except OSError as fault: return errno.errorcode[fault.errno]
        return "open"
    def print_json(answers): print(json.dumps(answers))
""")
FAMILIES = (16, 17, 30, 31, 38, 40, 44)
"""NETLINK, PACKET, TIPC, BLUETOOTH, ALG, VSOCK, XDP."""
REFUSED_CALLS = (
    "101, 0, 0, 0, 0  # ptrace",
    "250, 0, -3, 0  # keyctl",
    "248, 0, 0, 0, 0, -3  # add_key",
    "425, 1, 0  # io_uring_setup",
    "321, 0, 0, 0  # bpf",
    "298, 0, 0, 0, 0, 0  # perf_event_open",
    "323, 0  # userfaultfd",
    "272, 0x10000000  # unshare",
    "308, 0, 0  # setns",
    "165, 0, 0, 0, 0, 0  # mount",
    "166, 0, 0  # umount2",
    "56, 0x10000011, 0, 0, 0, 0  # clone",
    "304, 0, 0, 0  # open_by_handle_at",
    "310, 1, 0, 0, 0, 0, 0  # process_vm_readv",
    "135, 0xffffffff  # personality",
    "29, 0, 4097, 0x600  # shmget, of more than a page",
    "29, 0, 0x100000001, 0x600  # shmget, of 4 GiB",
    "16, 0, 0x5412, 0  # TIOCSTI",
    "16, 0, 0x700005412, 0  # TIOCSTI, with bits that the kernel drops",
)
"""System calls of x86_64 as a number and arguments."""
only_x86_64 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86_64 machine code")


async def run_and_decode(sandbox: BubblewrapSandbox, code: str) -> object:
    """Run code after the helpers of `CALL` and return what it prints as JSON."""
    result = await sandbox.run(python_request(CALL + code))
    assert result.status == "ok", result.stderr
    return json.loads(result.stdout)


async def test_only_sockets_of_a_network_namespace_can_be_opened(sandbox: BubblewrapSandbox) -> None:
    answers = await run_and_decode(
        sandbox, f"print_json([open_socket(f, t) for f in {FAMILIES} for t in (1, 2, 3)])"
    )

    assert answers == ["EAFNOSUPPORT"] * 3 * len(FAMILIES)
    assert (
        await run_and_decode(sandbox, "print_json([open_socket(f, t) for f in (1, 2, 10) for t in (1, 2)])")
        == ["open"] * 6
    )


@only_x86_64
async def test_calls_into_unneeded_kernel_parts_are_refused(sandbox: BubblewrapSandbox) -> None:
    calls = ", ".join(f"call({call.partition('#')[0]})" for call in REFUSED_CALLS)
    answers = await run_and_decode(sandbox, f"print_json([{calls}])")
    assert answers == ["EPERM"] * len(REFUSED_CALLS)

    answers = await run_and_decode(
        sandbox, "print_json([call(435, 0, 0), call(451, 0), call(39) == os.getpid()])"
    )
    assert answers == ["ENOSYS", "ENOSYS", True]


@only_x86_64
@pytest.mark.parametrize(
    "machine_code", ["b8 14 00 00 00 cd 80 c3", "b8 27 00 00 40 0f 05 c3"], ids=["int80", "x32"]
)
async def test_calls_of_another_architecture_end_the_program(
    sandbox: BubblewrapSandbox, machine_code: str
) -> None:
    # getpid as i386 and as x32.
    run_machine_code = f"""
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("{machine_code}"))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""
    result = await sandbox.run(python_request(CALL + run_machine_code))

    assert (result.status, result.signal, result.stdout) == ("signalled", 31, b"")


async def test_ordinary_programs_run_under_the_filter(sandbox: BubblewrapSandbox) -> None:
    code = """
        import asyncio, multiprocessing, socket, sqlite3, subprocess, tempfile, threading
        out = []
        thread = threading.Thread(target=out.append, args=("thread",)); thread.start(); thread.join()
        out.append(subprocess.run(["/bin/echo", "child"], capture_output=True, text=True).stdout.strip())
        with socket.create_server(("127.0.0.1", 0)) as server:
            client = socket.create_connection(server.getsockname())
            peer, _ = server.accept(); client.sendall(b"tcp"); out.append(peer.recv(9).decode())
        with multiprocessing.get_context("fork").Pool(2) as pool: out.append(sum(pool.map(abs, [-1, -2])))
        async def program():
            child = await asyncio.create_subprocess_exec("/bin/echo", "loop", stdout=-1)
            return (await child.communicate())[0].decode().strip()
        out.append(asyncio.run(program()))
        with tempfile.NamedTemporaryFile() as file:
            out.append(sqlite3.connect(file.name).execute("select 1").fetchone()[0])
        print(out)
    """
    result = await sandbox.run(python_request(code))

    assert result.stdout == b"['thread', 'child', 'tcp', 3, 'loop', 1]\n", result.stderr


async def test_a_shell_runs_under_the_filter(sandbox: BubblewrapSandbox) -> None:
    script = "echo a | tr a b; (exit 3) & wait $!; echo $?"
    result = await sandbox.run(RunRequest(argv=("/bin/sh", "-c", script)))
    assert result.stdout == b"b\n3\n"
