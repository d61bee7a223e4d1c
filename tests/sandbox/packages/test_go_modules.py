"""Go modules with the real go command, from a local proxy, used without a network."""

from __future__ import annotations

import io
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import Index, make_work_folder
from scenario.test_whole_projects import list_passed_checks, write_project
from scenario.written_projects import reply
from suture.api import Review, ReviewAnswer, verify
from suture.core.ledger import find_run
from suture.core.settings import BudgetSettings, PathSettings, RepairSettings, Settings
from suture.errors import PrerequisiteError
from suture.project.languages import Interpreter
from suture.sandbox import BubblewrapSandbox, Mount, ProgramLimits, RunRequest, discover_programs
from suture.sandbox.packages import NewProjectPackages, PackagesRefused, with_packages_shown
from suture.sandbox.packages.go_installer import Go
from suture.sandbox.packages.installer import FETCHED, WorkFolder

GO_MOD = b"module own\n\ngo 1.18\n\nrequire example.org/alpha v1.0.0\n"
MAIN = b'package main\n\nimport "example.org/alpha"\n\nfunc main() { println(alpha.Word()) }\n'


@pytest.fixture
def proxy(index: Index, monkeypatch: pytest.MonkeyPatch, require: Require) -> Index:
    """A module proxy that go uses, with the module `alpha`, which requires `beta`."""
    require("go", shutil.which("go") is not None, "it is not on PATH")
    monkeypatch.setenv("GOPROXY", f"{index.url}/go,direct")
    monkeypatch.setenv("GOSUMDB", "off")
    for name in ("GOFLAGS", "GOPRIVATE", "GONOSUMDB", "GONOPROXY"):
        monkeypatch.delenv(name, raising=False)
    publish_module(
        index, "example.org/alpha", "v1.0.0", requirement="example.org/beta v1.1.0", word="beta.Word()"
    )
    publish_module(index, "example.org/beta", "v1.1.0")
    return index


def publish_module(
    index: Index, name: str, version: str, *, requirement: str = "", word: str = '"a word"'
) -> None:
    """Publish a module of one function on the proxy."""
    require = f"\nrequire {requirement}\n" if requirement else ""
    go_mod = f"module {name}\n\ngo 1.17\n{require}"
    package = name.rpartition("/")[2]
    imported = f'import "{requirement.split()[0]}"\n' if requirement else ""
    code = f"package {package}\n\n{imported}\nfunc Word() string {{ return {word} }}\n"
    archive_bytes = io.BytesIO()
    with zipfile.ZipFile(archive_bytes, "w") as archive:
        archive.writestr(f"{name}@{version}/go.mod", go_mod)
        archive.writestr(f"{name}@{version}/{package}.go", code)
    version_path = f"/go/{name}/@v/{version}"
    index.pages[f"/go/{name}/@v/list"] = f"{version}\n".encode()
    index.pages[f"{version_path}.info"] = (
        f'{{"Version": "{version}", "Time": "2024-01-01T00:00:00Z"}}'.encode()
    )
    index.pages[f"{version_path}.mod"] = go_mod.encode()
    index.pages[f"{version_path}.zip"] = archive_bytes.getvalue()


@pytest.fixture
def interpreter(proxy: Index) -> Interpreter:
    """An interpreter with go."""
    return discover_programs(
        None, {"VIRTUAL_ENV": sys.prefix, "PATH": "/usr/local/go/bin:/usr/bin:/bin"}, "go"
    )


async def test_modules_are_fetched_and_locked_and_run_without_a_network(
    proxy: Index, sandbox: BubblewrapSandbox, tmp_path: Path, interpreter: Interpreter
) -> None:
    files = {"go.mod": GO_MOD, "main.go": MAIN}
    packages = NewProjectPackages(language="go", cache=tmp_path)
    installed = await packages.install_for(files, interpreter)

    assert installed is not None
    assert installed.names == ("example.org/alpha@v1.0.0", "example.org/beta@v1.1.0")
    assert "example.org/beta v1.1.0 // indirect" in installed.files["go.mod"]

    # The completed manifest requests the same set, and the lock is recognised.
    locked_files = {**files, **{path: text.encode() for path, text in installed.files.items()}}
    requested_paths = list(proxy.requested_paths)

    assert await packages.install_for(locked_files, interpreter) is not None
    assert packages.is_known_lock(installed.lock, locked_files, interpreter)
    assert packages.wrote_file("go.mod", installed.files["go.mod"])
    assert proxy.requested_paths == requested_paths

    toolchain = with_packages_shown(installed, interpreter).toolchain
    assert toolchain is not None

    request = RunRequest(
        argv=("go", "run", "."),
        files=locked_files,
        env={**toolchain.variables, "PATH": ":".join((*toolchain.folders, "/usr/bin", "/bin"))},
        mounts=tuple(Mount(source=source, target=target) for source, target in toolchain.shown.items()),
        limits=ProgramLimits(wall_s=100, cpu_s=100, memory_mb=8192, disk_mb=1024, file_mb=256),
    )
    result = await sandbox.run(request)

    assert result.stderr.decode().strip().endswith("a word"), result.stderr


async def test_a_proxy_may_be_a_folder(
    proxy: Index, tmp_path: Path, interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, content in proxy.pages.items():
        file = tmp_path / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    monkeypatch.setenv("GOPROXY", f"file://{tmp_path}/go")
    installed = await NewProjectPackages(language="go", cache=tmp_path).install_for(
        {"go.mod": GO_MOD}, interpreter
    )

    assert installed is not None
    assert installed.names == ("example.org/alpha@v1.0.0", "example.org/beta@v1.1.0")
    assert proxy.requested_paths == []


async def test_modules_are_fetched_without_a_sandbox_on_request(
    proxy: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    packages = NewProjectPackages(language="go", cache=tmp_path, sandboxed=False)
    installed = await packages.install_for({"go.mod": GO_MOD}, interpreter)
    assert installed is not None
    assert (installed.folder / "example.org" / "alpha@v1.0.0" / "alpha.go").exists()


async def test_a_module_that_does_not_match_its_lock_is_not_installed(
    proxy: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    files = {"go.mod": GO_MOD}
    first = await NewProjectPackages(language="go", cache=tmp_path / "one").install_for(files, interpreter)
    publish_module(proxy, "example.org/beta", "v1.1.0", word='"another"')

    second = await NewProjectPackages(language="go", cache=tmp_path / "two").install_for(files, interpreter)

    assert first is not None
    assert second is not None
    assert first.lock != second.lock
    with pytest.raises(PackagesRefused):
        await Go().install(
            ("example.org/alpha v1.0.0",), first.lock, work_folder_with(second.folder, tmp_path / "place")
        )


def work_folder_with(folder: Path, path: Path) -> WorkFolder:
    """Create a work folder at `path` into which the modules of another folder were fetched."""
    work_folder = make_work_folder(path)
    shutil.copytree(folder, work_folder.folder / FETCHED)
    return work_folder


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "here.invalid", "index.example"])
async def test_a_module_proxy_redirect_is_not_followed(
    proxy: Index, other_server: Index, tmp_path: Path, interpreter: Interpreter, host: str
) -> None:
    path = "/go/example.org/alpha/@v/v1.0.0.zip"
    other_server.pages[path] = proxy.pages[path]
    proxy.redirects[path] = f"{other_server.url}{path}".replace("127.0.0.1", host)

    # Go contacts a loopback address without a proxy, which fails in another way.
    with pytest.raises((PackagesRefused, PrerequisiteError)):
        await NewProjectPackages(language="go", cache=tmp_path).install_for({"go.mod": GO_MOD}, interpreter)
    assert path in proxy.requested_paths
    assert other_server.requested_paths == []


async def test_missing_modules_are_not_fetched_from_repositories(
    proxy: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    files = {"go.mod": b"module own\n\nrequire example.org/absent v1.0.0\n"}
    with pytest.raises(PackagesRefused):
        await NewProjectPackages(language="go", cache=tmp_path).install_for(files, interpreter)
    assert any("absent" in path for path in proxy.requested_paths)


async def test_false_indirect_requirements_are_refused(
    proxy: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    packages = NewProjectPackages(language="go", cache=tmp_path)
    for manifest in (GO_MOD, b"module own\n"):
        files = {"go.mod": manifest + b"require example.org/evil v1.0.0 // indirect\n"}
        with pytest.raises(PackagesRefused, match="nothing requires example"):
            await packages.install_for(files, interpreter)


@pytest.mark.parametrize(
    "line",
    [
        "replace example.org/alpha => ./evil",
        "replace example.org/alpha => example.org/evil v1.0.0",
        "toolchain go1.99.0",
        "ignore ./tests",
        "exclude example.org/alpha v1.0.0",
        "require example.org/alpha latest",
        "require alpha v1.0.0",
        "require (\n\texample.org/alpha v1.0.0; replace\n)",
    ],
)
def test_an_unsupported_line_of_go_mod_is_refused(line: str) -> None:
    with pytest.raises(PackagesRefused):
        Go().parse_manifest(f"module own\n\ngo 1.18\n{line}\n")


WORD_TASK = """A CLI that says a word.

    $ word
    a word
"""
WORD_MAIN = """
package main

import (
    "fmt"
    "os"

    "example.org/alpha"
)

func main() {
    if len(os.Args) > 1 {
        fmt.Println("usage: word")
        return
    }
    fmt.Println(alpha.Word())
}
"""
WORD_MOD = "module word\n\ngo 1.18\n\nrequire example.org/alpha v1.0.0\n"


@pytest.mark.heavy
@pytest.mark.timeout(500)  # several builds by go on a loaded machine
async def test_a_new_go_cli_uses_a_module(proxy: Index, sandbox: BubblewrapSandbox, tmp_path: Path) -> None:
    approved_calls: list[str] = []

    def answer(review: Review) -> ReviewAnswer:
        approved_calls.extend(fact.call for fact in review.facts)
        return ReviewAnswer(choice="approve")

    settings = Settings(
        paths=PathSettings(home=tmp_path / "home", cache=tmp_path / "cache"),
        repair=RepairSettings(enabled=False),
        budget=BudgetSettings(attempts=8, seconds=400),
    )
    destination = tmp_path / "word"
    unavailable_version = reply(
        ("main.go", "go", WORD_MAIN), ("go.mod", "text", WORD_MOD.replace("v1.0.0", "v9.0.0"))
    )
    correct_reply = reply(("main.go", "go", WORD_MAIN), ("go.mod", "text", WORD_MOD))
    result, model = await write_project(
        WORD_TASK,
        [unavailable_version, correct_reply],
        settings,
        sandbox,
        project="cli_tool",
        language="go",
        into=destination,
        on_review=answer,
    )

    assert result.outcome == "healed", result.reason
    assert "as the task shows: word (1)" in list_passed_checks(result)
    assert set(approved_calls) == {"go: example.org/alpha"}
    assert "v9.0.0" in model.calls[1].messages[-1].content
    assert "example.org/beta v1.1.0 // indirect" in (destination / "go.mod").read_text()
    assert "example.org/beta v1.1.0 h1:" in (destination / "go.sum").read_text()

    certificate = find_run(settings.paths.home, result.run_id).path / "certificate.json"
    verifications = [
        verification async for verification in verify(certificate, settings=settings, sandbox=sandbox)
    ]

    assert all(verification.ok for verification in verifications), verifications
