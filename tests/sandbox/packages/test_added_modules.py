"""Adding modules to a Go project with the real go command, which writes `go.mod` and `go.sum` itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.packages.local_index import Index
from sandbox.packages.test_go_modules import interpreter, proxy, publish_module
from suture.project.languages import Interpreter
from suture.sandbox.packages import AddedPackages, PackagesRefused

__all__ = ["interpreter", "proxy"]
GO_MOD = """module own // ours

go 1.18

require example.org/old v1.0.0 // kept

require example.org/beta v1.0.0 // indirect
"""
REQUESTED_FILES = {"go.mod": "module own\nrequire example.org/alpha v1.0.0\n"}


@pytest.fixture
async def base(proxy: Index, tmp_path: Path, interpreter: Interpreter) -> dict[str, bytes]:
    """A project with one module and the `go.sum` that the go command has written."""
    publish_module(
        proxy, "example.org/old", "v1.0.0", requirement="example.org/beta v1.0.0", word="beta.Word()"
    )
    publish_module(proxy, "example.org/beta", "v1.0.0")
    empty = {"go.mod": b"module own\n\ngo 1.18\n"}
    first = AddedPackages(language="go", base=empty, cache=tmp_path / "first")
    requested_files = first.normalize_requested_files({"go.mod": "require example.org/old v1.0.0\n"})
    installed = await first.install_for({"go.mod": requested_files["go.mod"].encode()}, interpreter)
    assert installed is not None
    publish_module(proxy, "example.org/beta", "v1.1.0")
    proxy.pages["/go/example.org/beta/@v/list"] = b"v1.0.0\nv1.1.0\n"
    return {"go.mod": GO_MOD.encode(), "go.sum": installed.files["go.sum"].encode()}


async def test_a_module_is_added_and_the_rest_of_go_mod_stays(
    base: dict[str, bytes], proxy: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    packages = AddedPackages(language="go", base=base, cache=tmp_path)
    written = packages.normalize_requested_files(REQUESTED_FILES)
    files = {**base, "go.mod": written["go.mod"].encode()}
    assert packages.allows_file("go.mod", files, interpreter)

    installed = await packages.install_for(files, interpreter)
    assert installed is not None

    go_mod = installed.files["go.mod"]

    assert "module own // ours\n" in go_mod
    assert "example.org/old v1.0.0 // kept" in go_mod
    assert "example.org/alpha v1.0.0\n" in go_mod
    assert "example.org/beta v1.1.0 // indirect" in go_mod, "go itself raises an indirect requirement"
    assert set(base["go.sum"].decode().splitlines()) < set(installed.files["go.sum"].splitlines())
    assert set(installed.names) == {"example.org/alpha@v1.0.0", "example.org/beta@v1.1.0"}
    # All modules of the project are present for a run without a network; completed files are recognised.
    assert (installed.folder / "example.org" / "old@v1.0.0" / "old.go").exists()

    completed_files = {path: text.encode() for path, text in installed.files.items()}
    offline_packages = AddedPackages(language="go", base=base, cache=tmp_path, may_fetch=False)

    assert all(offline_packages.allows_file(path, completed_files, interpreter) for path in completed_files)
    assert not offline_packages.allows_file(
        "go.sum", {**completed_files, "go.sum": completed_files["go.sum"] + b"x\n"}, interpreter
    )
    assert await offline_packages.install_for(completed_files, interpreter) is not None


async def test_a_module_that_does_not_match_go_sum_is_refused(
    base: dict[str, bytes], proxy: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_module(
        proxy, "example.org/old", "v1.0.0", requirement="example.org/beta v1.0.0", word='"another"'
    )
    packages = AddedPackages(language="go", base=base, cache=tmp_path)

    with pytest.raises(PackagesRefused, match=r"(?i)checksum mismatch"):
        await packages.install_for(
            {**base, "go.mod": packages.normalize_requested_files(REQUESTED_FILES)["go.mod"].encode()},
            interpreter,
        )


async def test_a_module_that_the_proxy_does_not_have_is_refused(
    base: dict[str, bytes], tmp_path: Path, interpreter: Interpreter
) -> None:
    packages = AddedPackages(language="go", base=base, cache=tmp_path)
    requested_files = packages.normalize_requested_files({"go.mod": "require example.org/absent v1.0.0\n"})
    with pytest.raises(PackagesRefused, match="absent"):
        await packages.install_for({**base, "go.mod": requested_files["go.mod"].encode()}, interpreter)
