"""New files that Python would import in place of another module."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from itertools import permutations, product
from pathlib import Path

import pytest

from suture.project.languages import ModuleLookup
from suture.project.languages.python_imports import find_search_path, find_shadowing_modules

OUTSIDE = ("plugin.py", "library/__init__.py", "shared/inner.py", "decimal.py")
"""What is installed; `shared` is a namespace package."""
MODULES = frozenset(("plugin", "library", "shared", "shared.inner", "decimal"))
LAYOUTS: Mapping[str, Mapping[str, bytes]] = {
    "src": {
        "src/shop/__init__.py": b"",
        "src/shop/prices.py": b"",
        "src/extra.py": b"",
        "tests/test_a.py": b"",
    },
    "configured path": {
        "pytest.ini": b"[pytest]\npythonpath = lib more/code\n",
        "lib/util.py": b"",
        "more/code/parts/one.py": b"",
        "test_a.py": b"",
    },
    "tests with helpers": {
        "shop.py": b"",
        "checks/test_a.py": b"",
        "checks/helper.py": b"",
        "checks/data/values.py": b"",
        "packed/__init__.py": b"",
        "packed/test_b.py": b"",
    },
}
SOURCE_ROOTS = {"src": ("src",)}
ENTRIES = {
    "src": {"", "src", "tests"},
    "configured path": {"", "lib", "more/code"},
    "tests with helpers": {"", "checks"},
}
NEW_NAMES = (
    "plugin.py", "library/__init__.py", "library/more.py", "shared/__init__.py", "shared/inner.py",
    "shared/other.py", "decimal.py", "fresh.py", "fresh/__init__.py", "extra.py", "util.py", "util/__init__.py",
    "shop/__init__.py", "shop/json.py", "shop.py", "helper/__init__.py", "parts.py", "data.py",
    "shop/prices/__init__.py",
)  # fmt: skip


def make_lookup(layout: str, **facts: object) -> ModuleLookup:
    known = {"files": LAYOUTS[layout], "source_roots": SOURCE_ROOTS.get(layout, ()), "modules": MODULES}
    return ModuleLookup(**{**known, **facts})  # type: ignore[arg-type]


def write_files(folder: Path, paths: Mapping[str, bytes] | tuple[str, ...]) -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")


def find_places(names: set[str], path: list[str]) -> dict[str, str | None]:
    """Return dotted name -> what Python finds on a path: a file, or `None` for nothing and for a namespace."""
    found = {}
    for name in names:
        search, spec = path, None
        for part in name.split("."):
            spec = PathFinder.find_spec(part, search)
            if spec is None:
                break
            folders = spec.submodule_search_locations or []
            search = list(
                getattr(folders, "_path", folders)
            )  # a namespace package searches again if iterated
        found[name] = spec.origin if spec is not None else None
    return found


def list_new_files(layout: str) -> Iterator[str]:
    for entry, name in product(sorted(ENTRIES[layout]), NEW_NAMES):
        path = f"{entry}/{name}".lstrip("/")
        if path not in LAYOUTS[layout]:
            yield path


def is_imported_instead(path: str, layout: str, folder: Path) -> bool:
    """Whether, in some order of the search path, a new file changes what Python finds for any name."""
    outside = folder / "outside"
    write_files(folder / "project", LAYOUTS[layout])
    write_files(outside, OUTSIDE)
    known = {file.removesuffix(".py").removesuffix("/__init__") for file in (*LAYOUTS[layout], *OUTSIDE)}
    entries = sorted(ENTRIES[layout])
    prefixes = [f"{entry}/" if entry else "" for entry in entries]
    names = {
        file.removeprefix(prefix).replace("/", ".")
        for file in known
        for prefix in prefixes
        if file.startswith(prefix)
    }
    paths = [
        [str(folder / "project" / entry) for entry in order] + [str(outside)]
        for order in permutations(entries)
    ]
    before = [find_places(names, search) for search in paths]
    write_files(folder / "project", (path,))
    sys.path_importer_cache.clear()
    after = [find_places(names, search) for search in paths]
    # A name that was not found, or was a namespace package, is not taken from anything.
    return any(
        old[name] is not None and old[name] != new[name]
        for old, new in zip(before, after, strict=True)
        for name in old
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_search_path_is_known_without_a_run(layout: str) -> None:
    tests = ("test_a.py",) if layout == "configured path" else ()
    assert find_search_path(make_lookup(layout, test_files=tests)) == ENTRIES[layout]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_new_file_is_refused_if_python_would_import_it_in_place_of_another(
    layout: str, tmp_path: Path
) -> None:
    lookup = make_lookup(layout)
    new_files = list(list_new_files(layout))
    expected = {
        path
        for number, path in enumerate(new_files)
        if is_imported_instead(path, layout, tmp_path / str(number))
    }
    refused = {path for path in new_files if path in set(find_shadowing_modules((path,), lookup))}
    assert refused == expected


def test_the_folders_of_the_run_replace_those_that_are_guessed() -> None:
    lookup = make_lookup("tests with helpers", search_path=(".", "odd/place", "/usr/lib/python3.11", "../up"))
    assert find_search_path(lookup) == {"", "odd/place"}
    assert set(find_shadowing_modules(("odd/place/plugin.py", "checks/plugin.py"), lookup)) == {
        "odd/place/plugin.py"
    }


def test_a_file_that_is_on_the_search_path_itself_is_refused() -> None:
    lookup = make_lookup("src", search_path=("bundle.zip",))
    assert set(find_shadowing_modules(("bundle.zip", "other.zip"), lookup)) == {"bundle.zip"}


def test_a_module_that_the_run_loaded_from_an_unlisted_place_is_not_replaced() -> None:
    loaded = frozenset({("hooked", ""), ("made", "build/made.py"), ("__main__", "")})
    lookup = make_lookup("src", loaded=loaded)
    new = ("hooked.py", "src/made.py", "src/__main__.py", "src/shop/hooked.py")
    assert set(find_shadowing_modules(new, lookup)) == {"hooked.py", "src/made.py"}


def test_a_folder_that_is_no_imported_package_does_not_reserve_its_name() -> None:
    files = {"docs/conf.py": b"", "test_a.py": b""}
    loaded = frozenset({("test_a", "test_a.py")})
    assert not set(find_shadowing_modules(("docs.py",), ModuleLookup(files=files, loaded=loaded)))
    used = frozenset({*loaded, ("docs", "docs")})
    assert set(find_shadowing_modules(("docs.py",), ModuleLookup(files=files, loaded=used))) == {"docs.py"}


@pytest.mark.parametrize(
    "path",
    [
        "x-1.0.Dist-Info/entry_points.txt",
        "src/x.EGG-INFO/entry_points.txt",
        "sitecustomize/__init__.py",
        "tools/usercustomize.py",
        "fast.abi3.so",
        "src/shop/__pycache__/prices.cpython-311.pyc",
    ],
)
def test_what_python_or_pytest_loads_without_an_import_is_refused(path: str) -> None:
    assert set(find_shadowing_modules((path,), make_lookup("src"))) == {path}
