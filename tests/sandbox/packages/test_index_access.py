"""The user's settings decide how the index is reached: proxies, certificates, logins, and a silent index."""

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
from suture.sandbox.packages.client import Client, run_client
from suture.sandbox.packages.index_proxy import IndexProxy, Origin
from suture.sandbox.packages.network_access import NetworkAccess
from suture.sandbox.packages.npm_installer import find_npm_access
from suture.sandbox.packages.pip_installer import UNREACHABLE, Pip, find_pip_access

ORIGIN = Origin(scheme="https", host="index.example", port=443)


async def test_a_download_may_last_longer_than_silence_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "IDLE_TIMEOUT_S", 0.6)
    gate = IndexProxy((), lambda _: "")
    client, far = asyncio.StreamReader(), asyncio.StreamReader()
    left, right = socket.socketpair()
    there, back = await asyncio.open_connection(sock=left), await asyncio.open_connection(sock=right)
    pumping = asyncio.create_task(gate._copy_all((client, there[1]), (far, back[1])))
    for _ in range(12):  # the client says nothing for 1.2 s, while something comes all the time
        await asyncio.sleep(0.1)
        far.feed_data(b"x")
    assert not pumping.done()
    with pytest.raises(TimeoutError):  # nothing moves any more
        await pumping
    assert await there[0].read(12) == b"x" * 12
    there[1].close()
    back[1].close()


@pytest.mark.parametrize("proxy", ["socks5h://127.0.0.1:1", "https://me:secret@127.0.0.1:1"])
async def test_an_unusable_proxy_is_reported_first(tmp_path: Path, proxy: str) -> None:
    python = Client(name="python", argv=("false",), host_argv=(), unreachable=UNREACHABLE)
    reach = NetworkAccess(origins=frozenset({ORIGIN}), proxy=proxy)
    with pytest.raises(PrerequisiteError, match="cannot use a") as raised:
        await run_client(python, [], make_work_folder(tmp_path / "place"), reach)
    assert "secret" not in f"{raised.value.message} {raised.value.remedy}"


def test_a_proxy_without_a_scheme_is_asked_by_http() -> None:
    assert NetworkAccess(proxy="proxy.example:3128").proxy_for(ORIGIN) == "http://proxy.example:3128"


async def test_certificates_that_are_not_there_are_named(
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
async def test_only_a_host_that_is_trusted_by_its_whole_name_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: str, verified: bool
) -> None:
    asked: list[str | None] = []

    async def page(url: str, proxy: str, path: str | None) -> str:
        asked.append(path)
        return "x"

    monkeypatch.setattr(pip_installer, "_read_page", page)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setenv("PIP_TRUSTED_HOST", trusted)
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    await find_pip_access(["alpha"], make_work_folder(tmp_path / "place"))
    assert asked == ["" if verified else None]


async def test_an_index_that_drips_is_left(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "INDEX_PAGE_TIMEOUT_S", 0.5)

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            for _number in range(100):
                writer.write(b"<a>")
                await asyncio.sleep(0.1)
                if writer.is_closing():
                    break

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{port}/simple")
        with pytest.raises(PrerequisiteError, match=r"no page could be read from .* \(TimeoutError\)"):
            await asyncio.wait_for(find_pip_access(["alpha"], make_work_folder(tmp_path / "place")), 8)


async def test_one_index_of_two_may_be_silent(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        silent = f"http://127.0.0.1:{closed.getsockname()[1]}/simple"
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", silent)
    assert len((await find_pip_access(["alpha"], make_work_folder(tmp_path / "place"))).origins) == 2
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL")
    monkeypatch.setenv("PIP_INDEX_URL", silent)
    with pytest.raises(PrerequisiteError, match=r"no page could be read from .* \(All connection"):
        await find_pip_access(["alpha"], make_work_folder(tmp_path / "other"))


async def test_the_login_of_another_registry_stays_here(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require
) -> None:
    npm = shutil.which("npm")
    require("npm", npm is not None, "it is not on PATH")
    server = index.url.removeprefix("http:")
    settings = tmp_path / "npmrc"
    settings.write_text(f"{server}/npm/:_authToken=ours\n//other.example/:_authToken=theirs\n")
    monkeypatch.setenv("npm_config_userconfig", str(settings))
    reach = await find_npm_access((str(npm),), make_work_folder(tmp_path / "place"))
    assert b":_authToken=ours" in reach.files[".npmrc"]
    assert b"theirs" not in reach.files[".npmrc"]
