"""How the index is reached under the user's settings: proxies, certificates, logins, and a silent index."""

from __future__ import annotations

import asyncio
import shutil
import socket
from contextlib import closing
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import Index, build_wheel, make_work_folder, publish_wheel
from suture.errors import PrerequisiteError
from suture.sandbox import tuning
from suture.sandbox.packages import pip_installer
from suture.sandbox.packages.client import Client, NetworkAccess, run_client
from suture.sandbox.packages.index_proxy import IndexProxy, Origin
from suture.sandbox.packages.npm_installer import find_npm_access
from suture.sandbox.packages.pip_installer import UNREACHABLE, Pip, find_pip_access

ORIGIN = Origin(scheme="https", host="index.example", port=443)


async def test_a_slow_download_ends_only_after_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "IDLE_TIMEOUT_S", 0.6)
    proxy = IndexProxy((), lambda _: "")
    client, server = asyncio.StreamReader(), asyncio.StreamReader()
    left, right = socket.socketpair()
    client_streams, server_streams = (
        await asyncio.open_connection(sock=left),
        await asyncio.open_connection(sock=right),
    )
    copying = asyncio.create_task(proxy._copy_all((client, client_streams[1]), (server, server_streams[1])))
    for _ in range(12):  # the client is silent for 1.2 s while the server sends all the time
        await asyncio.sleep(0.1)
        server.feed_data(b"x")

    assert not copying.done()
    with pytest.raises(TimeoutError):  # now both sides are silent
        await copying
    assert await client_streams[0].read(12) == b"x" * 12

    client_streams[1].close()
    server_streams[1].close()


async def test_a_connection_that_is_open_at_the_end_is_closed_without_a_traceback() -> None:
    reports: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, report: reports.append(report))
    proxy = IndexProxy((), lambda _: "")
    async with await asyncio.start_server(proxy._handle_connection, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        while not proxy._connections:
            await asyncio.sleep(0.01)
        for task in proxy._connections:
            task.cancel()

        assert await reader.read() == b""
        assert reports == []
        writer.close()


@pytest.mark.parametrize("proxy", ["socks5h://127.0.0.1:1", "https://me:secret@127.0.0.1:1"])
async def test_an_unusable_proxy_is_reported_first(tmp_path: Path, proxy: str) -> None:
    client = Client(name="python", argv=("false",), host_argv=(), unreachable=UNREACHABLE)
    access = NetworkAccess(origins=frozenset({ORIGIN}), proxy=proxy)
    with pytest.raises(PrerequisiteError, match="cannot use a") as raised:
        await run_client(client, [], make_work_folder(tmp_path / "place"), access)
    assert "secret" not in f"{raised.value.message} {raised.value.remedy}"


def test_a_proxy_without_a_scheme_uses_http() -> None:
    assert NetworkAccess(proxy="proxy.example:3128").proxy_for(ORIGIN) == "http://proxy.example:3128"


async def test_a_missing_certificate_file_is_reported(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "absent.pem"))
    with pytest.raises(PrerequisiteError, match=r"absent\.pem"):
        await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert index.requested_paths == []


@pytest.mark.parametrize(
    ("trusted", "verified"),
    [("", True), ("mirror-of-index.example", True), ("INDEX.example", False), ("a index.example:443", False)],
)
async def test_only_a_fully_named_trusted_host_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: str, verified: bool
) -> None:
    certificate_paths: list[str | None] = []

    async def read_page(url: str, proxy: str, path: str | None) -> str:
        certificate_paths.append(path)
        return "x"

    monkeypatch.setattr(pip_installer, "_read_page", read_page)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setenv("PIP_TRUSTED_HOST", trusted)
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)

    await find_pip_access(["alpha"], make_work_folder(tmp_path / "place"))

    assert certificate_paths == ["" if verified else None]


async def test_an_index_that_sends_too_slowly_times_out(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "INDEX_PAGE_TIMEOUT_S", 0.5)

    async def send_slowly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            for _number in range(100):
                writer.write(b"<a>")
                await asyncio.sleep(0.1)
                if writer.is_closing():
                    break

    async with await asyncio.start_server(send_slowly, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
        with pytest.raises(PrerequisiteError, match=r"no page could be read from .* \(TimeoutError\)"):
            await asyncio.wait_for(find_pip_access(["alpha"], make_work_folder(tmp_path / "place")), 8)


async def test_one_index_of_two_may_be_silent(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        silent_index = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", silent_index)

    assert len((await find_pip_access(["alpha"], make_work_folder(tmp_path / "place"))).origins) == 2

    monkeypatch.delenv("PIP_EXTRA_INDEX_URL")
    monkeypatch.setenv("PIP_INDEX_URL", silent_index)
    with pytest.raises(PrerequisiteError, match=r"no page could be read from .* \(All connection"):
        await find_pip_access(["alpha"], make_work_folder(tmp_path / "other"))


async def test_only_the_login_of_the_used_registry_is_passed_on(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require
) -> None:
    npm = shutil.which("npm")
    require("npm", npm is not None, "it is not on PATH")
    server = index.url.removeprefix("http:")
    npmrc = tmp_path / "npmrc"
    npmrc.write_text(f"{server}/npm/:_authToken=ours\n//other.example/:_authToken=theirs\n")
    monkeypatch.setenv("npm_config_userconfig", str(npmrc))

    access = await find_npm_access((str(npm),), make_work_folder(tmp_path / "place"))

    assert b":_authToken=ours" in access.files[".npmrc"]
    assert b"theirs" not in access.files[".npmrc"]
