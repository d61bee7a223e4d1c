"""The allow list bounds the resolved versions, not only what a manifest says."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import Index, build_wheel, publish_wheel
from suture.project.languages import Interpreter
from suture.project.safety import find_version_bounds
from suture.sandbox import discover_interpreter
from suture.sandbox.packages import NewProjectPackages, PackagesRefused
from suture.sandbox.packages.npm_installer import Npm

ALLOWED = {"python": {"alpha": "<2", "beta": "<2"}, "javascript": {"alpha": "<2"}}
pytestmark = pytest.mark.usefixtures("sandbox")


@pytest.fixture
def interpreter() -> Interpreter:
    """The interpreter of the running environment."""
    return discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})


def make_packages(cache: Path) -> NewProjectPackages:
    """Return the packages of a new Python project under the allow list."""
    return NewProjectPackages(language="python", cache=cache, allowed=ALLOWED)


@pytest.mark.heavy
async def test_the_allow_list_bounds_what_pip_resolves(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    for version in ("1.0", "2.0"):
        publish_wheel(index, "alpha", build_wheel("alpha", "beta", version), version)
        publish_wheel(index, "beta", build_wheel("beta", "", version), version)
    files = {"requirements.txt": b"alpha\n"}
    installed = await make_packages(tmp_path).install_for(files, interpreter)

    assert installed is not None
    assert installed.names == ("alpha==1.0", "beta==1.0")

    unbounded = await NewProjectPackages(language="python", cache=tmp_path).install_for(files, interpreter)

    assert unbounded is not None
    assert unbounded.names == ("alpha==2.0", "beta==2.0")
    # A lock that was written without the list is refused too.
    with pytest.raises(PackagesRefused, match=r"alpha 2\.0 would be installed, but only <2 is allowed"):
        await make_packages(tmp_path).install_for(
            {**files, "requirements.lock": unbounded.lock.encode()}, interpreter
        )


async def test_approved_packages_outside_the_list_are_installed(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "", "2.0"), "2.0")
    installed = await make_packages(tmp_path).install_for({"requirements.txt": b"alpha==2.0\n"}, interpreter)
    assert installed is not None
    assert installed.names == ("alpha==2.0",)


async def test_a_package_without_an_allowed_version_is_refused(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "", "2.0"), "2.0")
    with pytest.raises(PackagesRefused):
        await make_packages(tmp_path).install_for({"requirements.txt": b"alpha\n"}, interpreter)


async def test_npm_resolution_is_checked_against_the_list(
    index: Index, tmp_path: Path, require: Require, interpreter: Interpreter
) -> None:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    dist = {"tarball": f"{index.url}/npm/alpha.tgz", "integrity": "sha512-AAAA"}
    versions = {"2.0.0": {"name": "alpha", "version": "2.0.0", "dist": dist}}
    manifest = {"name": "alpha", "dist-tags": {"latest": "2.0.0"}, "versions": versions}
    index.pages["/npm/alpha"] = json.dumps(manifest).encode()
    files = {"package.json": b'{"dependencies": {"alpha": "*"}}'}

    with pytest.raises(PackagesRefused, match=r"alpha 2.0.0 would be installed, but only <2 is allowed"):
        await NewProjectPackages(language="javascript", cache=tmp_path, allowed=ALLOWED).install_for(
            files, interpreter
        )
    assert "/npm/alpha.tgz" not in index.requested_paths


def test_bounds_apply_to_the_packages_that_a_manifest_names() -> None:
    text = '{"dependencies": {"gamma": "1"}}'
    assert find_version_bounds("package.json", text, ALLOWED) == {}
    assert find_version_bounds("requirements.txt", "gamma\n", ALLOWED) == ALLOWED["python"]

    packages = {
        "node_modules/alpha": {"version": "1.0.0"},
        "node_modules/b/node_modules/alpha": {"version": "3.0.0"},
    }
    assert Npm().versions(json.dumps({"packages": packages}))["alpha"] == "1.0.0"
