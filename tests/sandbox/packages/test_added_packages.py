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
from sandbox.packages.test_cache_eviction import write_package_set
from suture.errors import PrerequisiteError
from suture.project.languages import Interpreter, Toolchain
from suture.sandbox import discover_interpreter
from suture.sandbox.packages import AddedPackages, InstalledPackages, PackagesRefused

pytestmark = pytest.mark.usefixtures("sandbox")
PYPROJECT = b'[project]\nname = "shop"\ndependencies = ["old>=1"]\n'
PYPROJECT_WITH_ALPHA = PYPROJECT.replace(b'"old>=1"', b'"old>=1", "alpha"')
PACKAGE_JSON = '{\n  "name": "shop",\n  "dependencies": {\n    "old": "^1.0.0"\n  }\n}\n'


@pytest.fixture
def interpreter() -> Interpreter:
    """The interpreter of the running environment."""
    return discover_interpreter(None, {"VIRTUAL_ENV": sys.prefix})


def with_installed(interpreter: Interpreter, folder: Path, *names: str) -> Interpreter:
    """Return the interpreter with more packages installed, each named as `name-version`."""
    for name in names:
        (folder / f"{name}.dist-info").mkdir(parents=True)
    return replace(interpreter, site_packages=(*interpreter.site_packages, str(folder)))


def python_packages(base: dict[str, bytes], cache: Path, **fields: object) -> AddedPackages:
    """Return the packages that a candidate adds to a Python project."""
    return AddedPackages(language="python", base=base, cache=cache, **fields)  # type: ignore[arg-type]


async def test_installed_packages_keep_their_version(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "old"))
    for version in ("1.0", "2.0"):
        publish_wheel(index, "old", build_wheel("old", "", version), version)
    base = {"pyproject.toml": PYPROJECT, "shop.py": b""}
    with_old = with_installed(interpreter, tmp_path / "env", "old-1.0")
    installed_sets: list[InstalledPackages] = []
    packages = python_packages(base, tmp_path, on_installed=installed_sets.append)

    assert await packages.install_for(base, with_old) is None

    unfinished_set = write_package_set(tmp_path / "packages", ".making-once", 10, days_ago=3)
    written = packages.normalize_requested_files({"requirements.txt": "alpha\n", "shop.py": "import alpha"})
    assert written == {"pyproject.toml": PYPROJECT_WITH_ALPHA.decode(), "shop.py": "import alpha"}

    files = {**base, "pyproject.toml": PYPROJECT_WITH_ALPHA}
    installed = await packages.install_for(files, with_old)

    assert installed is not None
    assert installed.names == ("alpha==1.0",)
    assert not unfinished_set.exists()
    assert sorted(path.name for path in installed.folder.iterdir()) == ["alpha-1.0.dist-info", "alpha.py"]
    assert installed.files == {"pyproject.toml": PYPROJECT_WITH_ALPHA.decode()}
    assert packages.allows_file("pyproject.toml", files, with_old)
    assert installed_sets == [installed]

    # The set is cached and installed again without the index, but only beside the same packages.
    requested_paths = list(index.requested_paths)
    assert await python_packages(base, tmp_path, may_fetch=False).install_for(files, with_old) is not None
    with pytest.raises(PrerequisiteError, match="must not be fetched"):
        await python_packages(base, tmp_path, may_fetch=False).install_for(files, interpreter)
    assert index.requested_paths == requested_paths


async def test_conflicting_packages_are_refused(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "old>=2"))
    publish_wheel(index, "old", build_wheel("old", "", "2.0"), "2.0")
    base = {"pyproject.toml": PYPROJECT}

    with pytest.raises(PackagesRefused, match="keep their versions"):
        await python_packages(base, tmp_path).install_for(
            {"pyproject.toml": PYPROJECT_WITH_ALPHA}, with_installed(interpreter, tmp_path / "env", "old-1.0")
        )


async def test_a_lock_gains_new_entries_and_keeps_the_rest(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    publish_wheel(index, "alpha", build_wheel("alpha", "old"))
    for version in ("1.0", "2.0"):
        publish_wheel(index, "old", build_wheel("old", "", version), version)
    lock = "# ours\nold==1.0 --hash=sha256:1111\n"
    base = {"requirements.txt": b"old>=1\n", "requirements.lock": lock.encode()}
    packages = python_packages(base, tmp_path)
    files = {**base, "requirements.txt": b"old>=1\nalpha\n"}
    installed = await packages.install_for(files, interpreter)
    assert installed is not None

    first, second, *_ = installed.files["requirements.lock"].splitlines()
    assert first == "# ours"
    assert second.startswith("alpha==1.0 --hash=sha256:")
    assert installed.files["requirements.lock"].endswith(lock.splitlines()[1] + "\n")

    locked = {**files, "requirements.lock": installed.files["requirements.lock"].encode()}
    other = python_packages(base, tmp_path, may_fetch=False)

    assert other.allows_file("requirements.lock", locked, interpreter)
    assert not other.allows_file(
        "requirements.lock", {**locked, "requirements.lock": b"alpha==9\n"}, interpreter
    )


@pytest.mark.parametrize(
    "text",
    [
        PYPROJECT_WITH_ALPHA.decode() + "[tool.pytest.ini_options]\naddopts = '-k nothing'\n",
        PYPROJECT_WITH_ALPHA.decode().replace("old>=1", "old>=0"),
        PYPROJECT_WITH_ALPHA.decode().replace("shop", "evil"),
        PYPROJECT.decode(),
    ],
)
def test_a_manifest_with_other_changes_is_not_allowed(
    text: str, tmp_path: Path, interpreter: Interpreter
) -> None:
    packages = python_packages({"pyproject.toml": PYPROJECT}, tmp_path)

    assert packages.allows_file("pyproject.toml", {"pyproject.toml": PYPROJECT_WITH_ALPHA}, interpreter)
    assert not packages.allows_file("pyproject.toml", {"pyproject.toml": text.encode()}, interpreter)
    if "alpha" in text:  # only the requested package is accepted
        assert packages.normalize_requested_files({"pyproject.toml": text}) == {
            "pyproject.toml": PYPROJECT_WITH_ALPHA.decode()
        }


async def test_the_allow_list_bounds_only_new_packages(
    index: Index, tmp_path: Path, interpreter: Interpreter
) -> None:
    for version in ("1.0", "2.0"):
        publish_wheel(index, "alpha", build_wheel("alpha", "old", version), version)
        publish_wheel(index, "old", build_wheel("old", "", version), version)
    allowed = {"python": {"alpha": "<2", "old": "<2"}}
    base = {"pyproject.toml": PYPROJECT}

    installed = await python_packages(base, tmp_path, allowed=allowed).install_for(
        {"pyproject.toml": PYPROJECT_WITH_ALPHA}, interpreter
    )

    assert installed is not None
    assert installed.names == ("alpha==1.0", "old==2.0")


@pytest.fixture
def node(index: Index, interpreter: Interpreter, require: Require) -> Interpreter:
    """An interpreter with Node, for which the index offers `alpha`, `beta` and two versions of `old`."""
    require("npm", shutil.which("npm") is not None, "it is not on PATH")
    publish_npm_package(index, "old", "module.exports = 1;\n", "1.0.0")
    publish_npm_package(index, "old", "module.exports = 2;\n", "1.5.0")
    publish_npm_package(index, "beta", "module.exports = 'beta';\n")
    publish_npm_package(index, "alpha", "module.exports = require('beta');\n", beta="^1.0.0", old="^1.0.0")
    node_path = shutil.which("node")
    assert node_path is not None
    return replace(interpreter, toolchain=Toolchain(language="javascript", program=node_path))


def npm_lock(index: Index, *, with_addresses: bool) -> str:
    """Return a lock file as npm writes it, with version 1.0.0 of `old` and a key `requires`, which npm keeps."""
    dist = json.loads(index.pages["/npm/old"])["versions"]["1.0.0"]["dist"]
    old = {"version": "1.0.0", "resolved": dist["tarball"], "integrity": dist["integrity"]}
    if not with_addresses:
        del old["resolved"]
    packages = {"": {"name": "shop", "dependencies": {"old": "^1.0.0"}}, "node_modules/old": old}
    lock = {"name": "shop", "lockfileVersion": 3, "requires": True, "packages": packages}
    return json.dumps(lock, indent=2) + "\n"


@pytest.mark.parametrize("with_addresses", [True, False])
async def test_npm_adds_to_the_lock_and_keeps_existing_entries(
    index: Index, tmp_path: Path, node: Interpreter, with_addresses: bool
) -> None:
    lock_before = npm_lock(index, with_addresses=with_addresses)
    base = {"package.json": PACKAGE_JSON.encode(), "package-lock.json": lock_before.encode()}
    packages = AddedPackages(language="javascript", base=base, cache=tmp_path)
    written = packages.normalize_requested_files(
        {"package.json": '{"dependencies": {"alpha": "^1.0.0"}, "type": "module"}'}
    )
    manifest = PACKAGE_JSON.replace('    "old"', '    "alpha": "^1.0.0",\n    "old"')

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
        json.loads(lock)["packages"]["node_modules/old"]
        == json.loads(lock_before)["packages"]["node_modules/old"]
    )
    assert ("resolved" in json.loads(lock)["packages"]["node_modules/beta"]) is with_addresses

    removed_lines = [line for line in lock_before.splitlines() if line not in lock.splitlines()]
    assert removed_lines == [], "the rest of the lock must stay unchanged"


async def test_without_a_lock_installed_packages_keep_their_version(
    index: Index, tmp_path: Path, node: Interpreter
) -> None:
    folder = tmp_path / "shop" / "node_modules"
    folder.mkdir(parents=True)
    installed_lock = json.loads(npm_lock(index, with_addresses=True))
    del installed_lock["packages"][""]
    (folder / ".package-lock.json").write_text(json.dumps(installed_lock))
    assert node.toolchain is not None

    node_with_packages = replace(
        node, toolchain=replace(node.toolchain, shown={str(folder): "/node_modules"})
    )
    base = {"package.json": PACKAGE_JSON.encode()}
    manifest = PACKAGE_JSON.replace('    "old"', '    "alpha": "^1.0.0",\n    "old"').encode()

    for interpreter, version in ((node_with_packages, "1.0.0"), (node, "1.5.0")):
        packages = AddedPackages(language="javascript", base=base, cache=tmp_path / version)
        installed = await packages.install_for({"package.json": manifest}, interpreter)
        assert installed is not None
        assert json.loads((installed.folder / "old" / "package.json").read_text())["version"] == version
        assert installed.files == {"package.json": manifest.decode()}


async def test_npm_scripts_of_the_project_do_not_run(index: Index, tmp_path: Path, node: Interpreter) -> None:
    manifest_with_script = PACKAGE_JSON.replace(
        '"name"', '"scripts": {"install": "node -e \\"process.exit(9)\\""},\n  "name"'
    )
    base = {"package.json": manifest_with_script.encode()}
    packages = AddedPackages(language="javascript", base=base, cache=tmp_path)
    written = packages.normalize_requested_files({"package.json": '{"dependencies": {"alpha": "^1.0.0"}}'})

    installed = await packages.install_for({"package.json": written["package.json"].encode()}, node)

    assert installed is not None
