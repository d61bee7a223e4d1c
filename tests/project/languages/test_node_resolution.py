"""New files that Node, Jest or Vitest would load in place of another module."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from suture.project.languages import LANGUAGES, ModuleLookup, find_runner
from suture.project.languages.node_resolution import find_shadowing_node_files

COMMANDS = {
    "node": ("node", "--test"),
    "jest": ("npx", "jest"),
    "vitest": ("npx", "vitest", "run"),
    "mocha": ("npx", "mocha"),
}


def find_refused(path: str, files: Mapping[str, str], command: str = "node") -> set[str]:
    contents = {name: text.encode() for name, text in files.items()}
    words = COMMANDS[command]
    lookup = ModuleLookup(
        files=contents,
        command=words,
        runner=find_runner(words, contents, "javascript"),
        packages=frozenset(("lodash", "@scope/tools")),
    )
    return set(find_shadowing_node_files((path,), lookup))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("path", ["src/cart.js", "src/cart.json"])
def test_a_file_comes_before_the_folder_of_its_name(command: str, path: str) -> None:
    files = {"src/cart/index.js": "", "a.js": "require('./src/cart')"}
    assert find_refused(path, files, command) == {path}


@pytest.mark.parametrize(
    ("command", "existing", "new", "is_refused"),
    [
        ("node", "cart.json", "cart.js", True),
        ("node", "cart.js", "cart.json", False),
        ("node", "cart.js", "cart.mjs", False),
        ("node", "cart.ts", "cart.js", True),
        ("node", "cart.js", "cart.ts", False),
        ("jest", "cart.ts", "cart.js", True),
        ("jest", "cart.js", "cart.ts", False),
        ("jest", "cart.jsx", "cart.cjs", True),
        ("vitest", "cart.js", "cart.mjs", True),
        ("vitest", "cart.mjs", "cart.js", False),
        ("vitest", "cart.js", "cart.ts", False),
        ("mocha", "cart.tsx", "cart.ts", True),
        ("mocha", "cart.js", "cart.mjs", False),
        ("mocha", "cart.js", "other.js", False),
        ("jest", "cart.js", "cart.d.ts", False),
    ],
)
def test_the_order_of_extensions_is_that_of_the_runner(
    command: str, existing: str, new: str, is_refused: bool
) -> None:
    files = {existing: "", "a.js": "require('./cart')"}
    assert bool(find_refused(new, files, command)) == is_refused


def test_data_that_is_imported_by_its_full_name_keeps_it() -> None:
    assert not find_refused("src/rates.js", {"src/rates.json": "{}", "a.js": "require('./src/rates.json')"})


def test_an_order_of_the_projects_own_may_be_any_order() -> None:
    own = {"jest.config.js": "module.exports = { moduleFileExtensions: ['ts', 'js'] }", "cart.js": ""}
    assert find_refused("cart.ts", own, "jest") == {"cart.ts"}


@pytest.mark.parametrize(
    "configuration",
    [
        {"package.json": '{"jest": {"moduleDirectories": ["node_modules", "lib"]}}'},
        {"jest.config.js": "module.exports = { modulePaths: ['<rootDir>/lib'] }"},
        {"tsconfig.json": '{"compilerOptions": {"baseUrl": "./lib"}}'},
        {"package.json": '{"scripts": {"test": "NODE_PATH=lib mocha"}}'},
    ],
)
@pytest.mark.parametrize("name", ["lodash.js", "lodash/index.js", "@scope/tools/index.js"])
def test_no_package_is_replaced_from_a_configured_folder(configuration: Mapping[str, str], name: str) -> None:
    assert find_refused(f"lib/{name}", configuration) == {f"lib/{name}"}
    assert not find_refused(f"src/{name}", configuration)
    assert not find_refused("lib/own.js", configuration)
    developed = {**configuration, f"lib/{name.removesuffix('.js')}/more.js": ""}
    assert not find_refused("lib/lodash/new.js", {**developed, "lib/lodash/more.js": ""})


def test_every_language_states_its_rule_or_has_none() -> None:
    rules = {name: facts.find_shadowing_files for name, facts in LANGUAGES.items()}
    assert rules["javascript"] is rules["typescript"] is find_shadowing_node_files
    assert not list(rules["go"](("cart_linux.go",), ModuleLookup(files={"cart.go": b""})))
