"""The sandbox in which packages are fetched, from which only the index can be reached."""

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
from suture.sandbox.packages.client import Client, NetworkAccess, parse_origins, run_client
from suture.sandbox.packages.index_proxy import IndexProxy
from suture.sandbox.packages.installer import WorkFolder
from suture.sandbox.packages.npm_installer import Npm
from suture.sandbox.packages.pip_installer import UNREACHABLE, Pip, parse_settings

pytestmark = pytest.mark.usefixtures("sandbox")  # skips where there is no sandbox
TRY_TO_ESCAPE = """
import os, socket, sys, urllib.request
index, other, secret = sys.argv[1:]
successes = []
def attempt(name, action):
    try:
        action()
    except OSError:
        return
    successes.append(name)
port = lambda url: int(url.rpartition(":")[2])
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
attempt("the index without the proxy", lambda: socket.create_connection(("127.0.0.1", port(index)), 2))
attempt("a service of this machine", lambda: socket.create_connection(("127.0.0.1", port(other)), 2))
attempt("another server without the proxy", lambda: direct.open(other, timeout=2))
attempt("another server through the proxy", lambda: urllib.request.urlopen(other, timeout=5))
attempt("an external address", lambda: socket.create_connection(("192.0.2.1", 80), 2))
attempt("a name lookup", lambda: socket.getaddrinfo("index.example", 80))
attempt("a datagram", lambda: socket.socket(socket.AF_INET, 2).sendto(b"x", ("192.0.2.1", 53)))
attempt("a file of the user", lambda: open(secret).read())
attempt("a file outside", lambda: open("/outside", "w"))
def send(head, expected):
    proxy = socket.create_connection(("127.0.0.1", 3128), 5)
    proxy.sendall(head.encode())
    answer = b""
    while chunk := proxy.recv(4096):
        answer += chunk
    if expected not in answer.partition(b"\\r\\n")[0]:
        raise OSError(answer[:60])
other_host = other.removeprefix("http://")
index_host = index.removeprefix("http://")
attempt("a tunnel to another server", lambda: send(f"CONNECT {other_host} HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("a tunnel to the index", lambda: send(f"CONNECT {index_host} HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("a request with another method", lambda: send(f"POST {index}/ HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("an address with credentials", lambda: send(f"GET http://127.0.0.1@{other_host}/ HTTP/1.1\\r\\n\\r\\n", b"200"))
attempt("an empty host name", lambda: send("GET /simple/ HTTP/1.1\\r\\n\\r\\n", b"200"))
second = f"GET {index}/one HTTP/1.1\\r\\ncontent-length: 90\\r\\n\\r\\nGET {other}/two HTTP/1.1\\r\\n\\r\\n"
attempt("a second request on one connection", lambda: send(second, b"302"))
if urllib.request.urlopen(index + "/there", timeout=5).read() != b"yes":
    successes.append("no index")
sys.exit("; ".join(successes) or "nothing")
"""


async def test_a_compromised_client_reaches_only_the_index(
    index: Index, other_server: Index, tmp_path: Path
) -> None:
    index.pages["/there"] = b"yes"
    other_server.pages["/"] = b"no"
    secret = tmp_path / "secret"
    secret.write_text("mine")
    work_folder = make_work_folder(tmp_path / "place")
    client = Client(
        name="python",
        argv=(get_own_interpreter().executable, "-I", "-c"),
        host_argv=(),
        unreachable=UNREACHABLE,
    )
    access = NetworkAccess(origins=parse_origins([index.url], ()))

    with pytest.raises(PackagesRefused, match="led past its index") as refusal:
        await run_client(
            client, [TRY_TO_ESCAPE, index.url, other_server.url, str(secret)], work_folder, access
        )

    output = await run_and_read_output(
        client, [TRY_TO_ESCAPE, index.url, other_server.url, str(secret)], work_folder, access
    )

    assert output == "nothing", refusal.value.reason
    assert other_server.requested_paths == []
    assert "/two" not in index.requested_paths
    assert list(work_folder.folder.iterdir()) == []


async def run_and_read_output(
    client: Client, argv: list[str], work_folder: WorkFolder, access: NetworkAccess
) -> str:
    """Run a client in the sandbox and return what it prints."""
    proxy = IndexProxy(access.origins, access.proxy_for)
    _, text = await client_module._run_in_sandbox(client, argv, work_folder.folder, access, proxy)
    return text.strip()


async def test_without_network_access_the_index_is_unreachable(index: Index, tmp_path: Path) -> None:
    index.pages["/"] = b"yes"
    client = Client(
        name="python",
        argv=(get_own_interpreter().executable, "-I", "-c"),
        host_argv=(),
        unreachable=UNREACHABLE,
    )
    code = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])"

    with pytest.raises((PackagesRefused, PrerequisiteError)):
        await run_client(client, [code, index.url], make_work_folder(tmp_path / "place"))
    assert index.requested_paths == []


@pytest.mark.parametrize("page", ["/simple/alpha/", "/files/alpha-1.0-py3-none-any.whl"])
async def test_an_index_redirect_is_not_followed(
    index: Index, other_server: Index, tmp_path: Path, page: str
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    publish_wheel(other_server, "alpha", build_wheel("alpha"))
    index.redirects[page] = f"{other_server.url}{page}"

    with pytest.raises(PackagesRefused, match="led past its index"):
        await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert index.requested_paths
    assert other_server.requested_paths == []


@pytest.mark.parametrize("prefix", ["", "git+"])
async def test_a_wheel_cannot_require_from_another_server(
    index: Index, other_server: Index, tmp_path: Path, prefix: str
) -> None:
    publish_wheel(
        index, "alpha", build_wheel("alpha", f"evil @ {prefix}{other_server.url}/evil-1.0-py3-none-any.whl")
    )
    other_server.pages["/evil-1.0-py3-none-any.whl"] = build_wheel("evil")

    with pytest.raises(PackagesRefused):
        await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert other_server.requested_paths == []


async def test_files_that_an_index_links_to_are_reachable(
    index: Index, other_server: Index, tmp_path: Path
) -> None:
    file = "alpha-1.0-py3-none-any.whl"
    index.pages["/simple/alpha/"] = f'<a href="{other_server.url}/files/{file}">{file}</a>'.encode()
    other_server.pages[f"/files/{file}"] = build_wheel("alpha")
    lock = await Pip().resolve(("alpha",), make_work_folder(tmp_path / "place"))
    assert lock.startswith("alpha==1.0 --hash=sha256:")


async def test_an_index_with_a_password_works_and_the_password_is_hidden(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha"))
    index_with_password = index.url.replace("http://", "http://me:sk-secret@")
    monkeypatch.setenv("PIP_INDEX_URL", f"{index_with_password}/simple")

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


def publish_npm_manifest(index: Index, name: str, tarball: str, **fields: object) -> None:
    """Add an npm package to the index without its archive."""
    version = {
        "name": name,
        "version": "1.0.0",
        "dist": {"tarball": tarball, "integrity": "sha512-AAAA"},
        **fields,
    }
    manifest = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    index.pages[f"/npm/{name}"] = json.dumps(manifest).encode()


@pytest.mark.parametrize(
    "requirement",
    ["{other}/evil.tgz", "git+{other}/evil.git"],
)
async def test_npm_contacts_no_other_server(
    index: Index, other_server: Index, tmp_path: Path, require: Require, requirement: str
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    dependencies = {"evil": requirement.format(other=other_server.url)}
    publish_npm_manifest(index, "alpha", f"{index.url}/npm/alpha.tgz", dependencies=dependencies)

    with pytest.raises(PackagesRefused):
        await Npm().resolve(("dependencies alpha@1.0.0",), make_work_folder(tmp_path / "place"))
    assert "/npm/alpha" in index.requested_paths
    assert other_server.requested_paths == []


async def test_a_registry_redirect_is_not_followed(
    index: Index, other_server: Index, tmp_path: Path, require: Require
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    index.redirects["/npm/alpha"] = f"{other_server.url}/npm/alpha"
    publish_npm_manifest(other_server, "alpha", f"{other_server.url}/npm/alpha.tgz")
    with pytest.raises(PackagesRefused, match="led past its index"):
        await Npm().resolve(("dependencies alpha@1.0.0",), make_work_folder(tmp_path / "place"))
    assert other_server.requested_paths == []


def test_pip_settings_have_the_precedence_of_pip() -> None:
    output = (
        "global.index-url='a'\ndownload.index-url='b'\ninstall.index-url='c'\n:env:.cert='/d'\nnonsense\n"
    )
    assert parse_settings(output) == {"index-url": "b", "cert": "/d"}
