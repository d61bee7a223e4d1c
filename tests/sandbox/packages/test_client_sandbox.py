"""The sandbox in which packages are fetched: only the index can be reached."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import Index, build_wheel, make_work_folder, publish_wheel
from suture.errors import PrerequisiteError
from suture.sandbox import BubblewrapSandbox, get_own_interpreter
from suture.sandbox.packages import PackagesRefused
from suture.sandbox.packages import client as client_module
from suture.sandbox.packages.client import Client, run_client
from suture.sandbox.packages.index_proxy import IndexProxy
from suture.sandbox.packages.installer import WorkFolder
from suture.sandbox.packages.network_access import NetworkAccess, parse_origins
from suture.sandbox.packages.npm_installer import Npm
from suture.sandbox.packages.pip_installer import UNREACHABLE, Pip, parse_settings

pytestmark = pytest.mark.usefixtures("sandbox")  # skips where there is no sandbox
TRY_ALL = """
import os, socket, sys, urllib.request
index, other, secret = sys.argv[1:]
done = []
def attempt(what, act):
    try:
        act()
    except OSError:
        return
    done.append(what)
port = lambda url: int(url.rpartition(":")[2])
straight = urllib.request.build_opener(urllib.request.ProxyHandler({}))
attempt("the index past the gate", lambda: socket.create_connection(("127.0.0.1", port(index)), 2))
attempt("a service of this machine", lambda: socket.create_connection(("127.0.0.1", port(other)), 2))
attempt("the same without a proxy", lambda: straight.open(other, timeout=2))
attempt("the same by the gate", lambda: urllib.request.urlopen(other, timeout=5))
attempt("an address of the world", lambda: socket.create_connection(("192.0.2.1", 80), 2))
attempt("a name", lambda: socket.getaddrinfo("index.example", 80))
attempt("a datagram", lambda: socket.socket(socket.AF_INET, 2).sendto(b"x", ("192.0.2.1", 53)))
attempt("a file of the user's", lambda: open(secret).read())
attempt("a file outside", lambda: open("/outside", "w"))
def ask(head, expected):
    gate = socket.create_connection(("127.0.0.1", 3128), 5)
    gate.sendall(head.encode())
    answer = b""
    while chunk := gate.recv(4096):
        answer += chunk
    if expected not in answer.partition(b"\\r\\n")[0]:
        raise OSError(answer[:60])
there = other.removeprefix("http://")
near = index.removeprefix("http://")
attempt("a tunnel to it", lambda: ask(f"CONNECT {there} HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("a tunnel to what is asked plainly", lambda: ask(f"CONNECT {near} HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("what is no request", lambda: ask(f"POST {index}/ HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("a name with a sign", lambda: ask(f"GET http://127.0.0.1@{there}/ HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("an empty name", lambda: ask("GET /simple/ HTTP/1.1\\r\\n\\r\\n", b"200"))
second = f"GET {index}/one HTTP/1.1\\r\\ncontent-length: 90\\r\\n\\r\\nGET {other}/two HTTP/1.1\\r\\n\\r\\n"
attempt("a request behind one", lambda: ask(second, b"302"))
if urllib.request.urlopen(index + "/there", timeout=5).read() != b"yes":
    done.append("no index")
sys.exit("; ".join(done) or "nothing")
"""


async def test_a_client_that_is_taken_over_reaches_the_index_alone(
    index: Index, other: Index, tmp_path: Path
) -> None:
    index.pages["/there"] = b"yes"
    other.pages["/"] = b"no"
    secret = tmp_path / "secret"
    secret.write_text("mine")
    place = make_work_folder(tmp_path / "place")
    python = Client(
        name="python",
        argv=(get_own_interpreter().executable, "-I", "-c"),
        host_argv=(),
        unreachable=UNREACHABLE,
    )
    reach = NetworkAccess(origins=parse_origins([index.url], ()))
    with pytest.raises(PackagesRefused, match="led past its index") as told:
        await run_client(python, [TRY_ALL, index.url, other.url, str(secret)], place, reach)
    said = await _said(python, [TRY_ALL, index.url, other.url, str(secret)], place, reach)
    assert said == "nothing", told.value.reason
    assert other.requested_paths == []
    assert "/two" not in index.requested_paths
    assert list(place.folder.iterdir()) == []


async def _said(client: Client, argv: list[str], place: WorkFolder, reach: NetworkAccess) -> str:
    gate = IndexProxy(reach.origins, reach.proxy_for)
    _, text = await client_module._run_in_sandbox(client, argv, place.folder, reach, gate)
    return text.strip()


async def test_without_a_reach_there_is_no_gate(index: Index, tmp_path: Path) -> None:
    index.pages["/"] = b"yes"
    python = Client(
        name="python",
        argv=(get_own_interpreter().executable, "-I", "-c"),
        host_argv=(),
        unreachable=UNREACHABLE,
    )
    code = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"
    with pytest.raises((PackagesRefused, PrerequisiteError)):
        await run_client(python, [code, index.url], make_work_folder(tmp_path / "place"))
    assert index.requested_paths == []


@pytest.mark.parametrize("page", ["/simple/alpha/", "/files/alpha-1.0-py3-none-any.whl"])
async def test_an_index_redirect_is_not_followed(
    index: Index, other: Index, tmp_path: Path, page: str
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    publish_wheel(other, "alpha", build_wheel("alpha"))
    index.redirects[page] = f"{other.url}{page}"
    with pytest.raises(PackagesRefused, match="led past its index"):
        await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert index.requested_paths
    assert other.requested_paths == []


@pytest.mark.parametrize("how", ["", "git+"])
async def test_a_wheel_cannot_require_from_another_server(
    index: Index, other: Index, tmp_path: Path, how: str
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", f"evil @ {how}{other.url}/evil-1.0-py3-none-any.whl"))
    other.pages["/evil-1.0-py3-none-any.whl"] = build_wheel("evil")
    with pytest.raises(PackagesRefused):
        await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert other.requested_paths == []


async def test_where_an_index_says_that_its_files_lie_is_in_reach(
    index: Index, other: Index, tmp_path: Path
) -> None:
    file = "alpha-1.0-py3-none-any.whl"
    index.pages["/simple/alpha/"] = f'<a href="{other.url}/files/{file}">{file}</a>'.encode()
    other.pages[f"/files/{file}"] = build_wheel("alpha")
    lock = await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert lock.startswith("alpha==1.0 --hash=sha256:")


async def test_an_index_with_a_password_works_and_the_password_is_hidden(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    secret = index.url.replace("http://", "http://me:sk-secret@")
    monkeypatch.setenv("PIP_INDEX_URL", f"{secret}/simple")
    assert await Pip().resolve(("alpha",), make_work_folder(tmp_path / "one"))
    with pytest.raises(PackagesRefused) as refused:
        await Pip().resolve(("absent",), make_work_folder(tmp_path / "two"))
    assert "sk-secret" not in refused.value.reason


async def test_without_a_sandbox_nothing_is_fetched(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    monkeypatch.setattr(client_module, "BubblewrapSandbox", partial(BubblewrapSandbox, find=lambda: ()))
    with pytest.raises(PrerequisiteError, match="in a sandbox") as raised:
        await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert "safety.fetch_packages = 'host'" in raised.value.remedy
    assert not any("/files/" in path for path in index.requested_paths)
    lock = await Pip().resolve(("alpha",), make_work_folder(tmp_path / "here", sandboxed=False))
    assert lock.startswith("alpha==1.0")


def node_package(index: Index, name: str, tarball: str, **more: object) -> None:
    version = {
        "name": name,
        "version": "1.0.0",
        "dist": {"tarball": tarball, "integrity": "sha512-AAAA"},
        **more,
    }
    page = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    index.pages[f"/npm/{name}"] = json.dumps(page).encode()


@pytest.mark.parametrize(
    "asked",
    ["{other}/evil.tgz", "git+{other}/evil.git"],
)
async def test_npm_contacts_no_other_server(
    index: Index, other: Index, tmp_path: Path, require: Require, asked: str
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    needs = {"evil": asked.format(other=other.url)}
    node_package(index, "alpha", f"{index.url}/npm/alpha.tgz", dependencies=needs)
    with pytest.raises(PackagesRefused):
        await Npm().resolve(("dependencies alpha@1.0.0",), make_work_folder(tmp_path / "place"))
    assert "/npm/alpha" in index.requested_paths
    assert other.requested_paths == []


async def test_a_registry_redirect_is_not_followed(
    index: Index, other: Index, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    index.redirects["/npm/alpha"] = f"{other.url}/npm/alpha"
    node_package(other, "alpha", f"{other.url}/npm/alpha.tgz")
    with pytest.raises(PackagesRefused, match="led past its index"):
        await Npm().resolve(("dependencies alpha@1.0.0",), make_work_folder(tmp_path / "place"))
    assert other.requested_paths == []


def test_pips_settings_are_read_as_pip_counts_them() -> None:
    told = "global.index-url='a'\ndownload.index-url='b'\ninstall.index-url='c'\n:env:.cert='/d'\nnonsense\n"
    assert parse_settings(told) == {"index-url": "b", "cert": "/d"}
