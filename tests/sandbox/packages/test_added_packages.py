"""Adding packages to an existing project with the real pip and npm, from a local index."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from requirements import Require
from sandbox.packages.local_index import Index, build_wheel, publish_npm_package, publish_wheel
from sandbox.packages.test_cache_eviction import keep
from suture.errors import PrerequisiteError
from suture.project.languages import Interpreter, Toolchain
from suture.sandbox import discover_interpreter
from suture.sandbox.packages import AddedPackages, InstalledPackages, PackagesRefused

pytestmark = pytest.mark.usefixtures("sandbox")
PYPROJECT = b'[project]\nname = "shop"\ndependencies = ["old>=1"]\n'
WRITTEN = PYPROJECT.replace(b'"old>=1"', b'"old>=1", "alpha"')
PACKAGE = '{\n  "name": "shop",\n  "dependencies": {\n    "old": "^1.0.0"\n  }\n}\n'


@pytest.fixture
def interpreter() -> Interpreter:
    return discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})


def having(interpreter: Interpreter, folder: Path, *names: str) -> Interpreter:
    """The same, in whose environment these are installed, each `name-version`."""
    for name in names:
        (folder / f"{name}.dist-info").mkdir(parents=True)
    return replace(interpreter, site_packages=(*interpreter.site_packages, str(folder)))


def python(base: dict[str, bytes], cache: Path, **given: object) -> AddedPackages:
    return AddedPackages(language="python", base=base, cache=cache, **given)  # type: ignore[arg-type]


async def test_installed_packages_keep_their_version(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "old"))
    for version in ("1.0", "2.0"):
        publish_wheel(index, "old", build_wheel("old", "", version), version)
    base = {"pyproject.toml": PYPROJECT, "shop.py": b""}
    with_old = having(interpreter, tmp_path / "env", "old-1.0")
    told: list[InstalledPackages] = []
    packages = python(base, tmp_path, on_installed=told.append)
    assert await packages.install_for(base, with_old) is None
    of_a_killed_run = keep(tmp_path / "packages", ".making-once", 10, days_ago=3)
    written = packages.normalize_requested_files({"requirements.txt": "alpha\n", "shop.py": "import alpha"})
    assert written == {"pyproject.toml": WRITTEN.decode(), "shop.py": "import alpha"}
    files = {**base, "pyproject.toml": WRITTEN}
    installed = await packages.install_for(files, with_old)
    assert installed is not None
    assert installed.names == ("alpha==1.0",)
    assert not of_a_killed_run.exists()
    assert sorted(path.name for path in installed.folder.iterdir()) == ["alpha-1.0.dist-info", "alpha.py"]
    assert installed.files == {"pyproject.toml": WRITTEN.decode()}
    assert packages.allows_file("pyproject.toml", files, with_old)
    assert told == [installed]
    # Kept, and laid again without a look at the index: but only beside what it was made for.
    asked = list(index.requested_paths)
    assert await python(base, tmp_path, may_fetch=False).install_for(files, with_old) is not None
    with pytest.raises(PrerequisiteError, match="must not be fetched"):
        await python(base, tmp_path, may_fetch=False).install_for(files, interpreter)
    assert index.requested_paths == asked


async def test_conflicting_packages_are_refused(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "old>=2"))
    publish_wheel(index, "old", build_wheel("old", "", "2.0"), "2.0")
    base = {"pyproject.toml": PYPROJECT}
    with pytest.raises(PackagesRefused, match="keep their versions"):
        await python(base, tmp_path).install_for(
            {"pyproject.toml": WRITTEN}, having(interpreter, tmp_path / "env", "old-1.0")
        )


async def test_a_lock_gains_new_entries_and_keeps_the_rest(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "old"))
    for version in ("1.0", "2.0"):
        publish_wheel(index, "old", build_wheel("old", "", version), version)
    lock = "# ours\nold==1.0 --hash=sha256:1111\n"
    base = {"requirements.txt": b"old>=1\n", "requirements.lock": lock.encode()}
    packages = python(base, tmp_path)
    files = {**base, "requirements.txt": b"old>=1\nalpha\n"}
    installed = await packages.install_for(files, interpreter)
    assert installed is not None
    first, second, *_ = installed.files["requirements.lock"].splitlines()
    assert first == "# ours"
    assert second.startswith("alpha==1.0 --hash=sha256:")
    assert installed.files["requirements.lock"].endswith(lock.splitlines()[1] + "\n")
    locked = {**files, "requirements.lock": installed.files["requirements.lock"].encode()}
    other = python(base, tmp_path, may_fetch=False)
    assert other.allows_file("requirements.lock", locked, interpreter)
    assert not other.allows_file(
        "requirements.lock", {**locked, "requirements.lock": b"alpha==9\n"}, interpreter
    )


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN.decode() + "[tool.pytest.ini_options]\naddopts = '-k nothing'\n",
        WRITTEN.decode().replace("old>=1", "old>=0"),
        WRITTEN.decode().replace("shop", "evil"),
        PYPROJECT.decode(),
    ],
)
def test_a_manifest_that_says_more_is_not_allowed(
    text: str, tmp_path: Path, interpreter: Interpreter
) -> None:
    packages = python({"pyproject.toml": PYPROJECT}, tmp_path)
    assert packages.allows_file("pyproject.toml", {"pyproject.toml": WRITTEN}, interpreter)
    assert not packages.allows_file("pyproject.toml", {"pyproject.toml": text.encode()}, interpreter)
    if "alpha" in text:  # what it asks for is taken, and nothing else
        assert packages.normalize_requested_files({"pyproject.toml": text}) == {
            "pyproject.toml": WRITTEN.decode()
        }


async def test_the_list_bounds_only_new_packages(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    for version in ("1.0", "2.0"):
        publish_wheel(index, "alpha", build_wheel("alpha", "old", version), version)
        publish_wheel(index, "old", build_wheel("old", "", version), version)
    allowed = {"python": {"alpha": "<2", "old": "<2"}}
    base = {"pyproject.toml": PYPROJECT}
    installed = await python(base, tmp_path, allowed=allowed).install_for(
        {"pyproject.toml": WRITTEN}, interpreter
    )
    assert installed is not None
    assert installed.names == ("alpha==1.0", "old==2.0")


@pytest.fixture
def node(index: Index, interpreter: Interpreter, require: Require) -> Interpreter:
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    publish_npm_package(index, "old", "module.exports = 1;\n", "1.0.0")
    publish_npm_package(index, "old", "module.exports = 2;\n", "1.5.0")
    publish_npm_package(index, "beta", "module.exports = 'beta';\n")
    publish_npm_package(index, "alpha", "module.exports = require('beta');\n", beta="^1.0.0", old="^1.0.0")
    found = shutil.which("node")
    assert found is not None
    return replace(interpreter, toolchain=Toolchain(language="javascript", program=found))


def lock_of(index: Index, *, addresses: bool) -> str:
    """As npm writes it, with an old version, and a word of its author's that npm keeps."""
    page = json.loads(index.pages["/npm/old"])["versions"]["1.0.0"]["dist"]
    old = {"version": "1.0.0", "resolved": page["tarball"], "integrity": page["integrity"]}
    if not addresses:
        del old["resolved"]
    packages = {"": {"name": "shop", "dependencies": {"old": "^1.0.0"}}, "node_modules/old": old}
    whole = {"name": "shop", "lockfileVersion": 3, "requires": True, "packages": packages}
    return json.dumps(whole, indent=2) + "\n"


@pytest.mark.parametrize("addresses", [True, False])
async def test_npm_adds_to_the_lock_and_keeps_existing_entries(
    index: Index, tmp_path: Path, node: Interpreter, addresses: bool
) -> None:
    before = lock_of(index, addresses=addresses)
    base = {"package.json": PACKAGE.encode(), "package-lock.json": before.encode()}
    packages = AddedPackages(language="javascript", base=base, cache=tmp_path)
    written = packages.normalize_requested_files(
        {"package.json": '{"dependencies": {"alpha": "^1.0.0"}, "type": "module"}'}
    )
    manifest = PACKAGE.replace('    "old"', '    "alpha": "^1.0.0",\n    "old"')
    assert written == {"package.json": manifest}
    files = {**base, "package.json": manifest.encode()}
    installed = await packages.install_for(files, node)
    assert installed is not None
    assert set(installed.names) == {"alpha@1.0.0", "beta@1.0.0"}
    assert sorted(path.name for path in installed.folder.iterdir()) == [
        ".package-lock.json",
        "alpha",
        "beta",
        "old",
    ]
    lock = installed.files["package-lock.json"]
    assert (
        json.loads(lock)["packages"]["node_modules/old"] == json.loads(before)["packages"]["node_modules/old"]
    )
    assert ("resolved" in json.loads(lock)["packages"]["node_modules/beta"]) is addresses
    gone = [line for line in before.splitlines() if line not in lock.splitlines()]
    assert gone == [], "the rest of the lock stays to the letter"


async def test_without_a_lock_installed_packages_keep_their_version(
    index: Index, tmp_path: Path, node: Interpreter
) -> None:
    folder = tmp_path / "shop" / "node_modules"
    folder.mkdir(parents=True)
    hidden = json.loads(lock_of(index, addresses=True))
    del hidden["packages"][""]
    (folder / ".package-lock.json").write_text(json.dumps(hidden))
    assert node.toolchain is not None
    shown = replace(node, toolchain=replace(node.toolchain, shown={str(folder): "/node_modules"}))
    base = {"package.json": PACKAGE.encode()}
    manifest = PACKAGE.replace('    "old"', '    "alpha": "^1.0.0",\n    "old"').encode()
    for interpreter, version in ((shown, "1.0.0"), (node, "1.5.0")):
        packages = AddedPackages(language="javascript", base=base, cache=tmp_path / version)
        installed = await packages.install_for({"package.json": manifest}, interpreter)
        assert installed is not None
        assert json.loads((installed.folder / "old" / "package.json").read_text())["version"] == version
        assert installed.files == {"package.json": manifest.decode()}


async def test_npm_scripts_of_the_project_do_not_run(index: Index, tmp_path: Path, node: Interpreter) -> None:
    loud = PACKAGE.replace('"name"', '"scripts": {"install": "node -e \\"process.exit(9)\\""},\n  "name"')
    base = {"package.json": loud.encode()}
    packages = AddedPackages(language="javascript", base=base, cache=tmp_path)
    written = packages.normalize_requested_files({"package.json": '{"dependencies": {"alpha": "^1.0.0"}}'})
    installed = await packages.install_for({"package.json": written["package.json"].encode()}, node)
    assert installed is not None
