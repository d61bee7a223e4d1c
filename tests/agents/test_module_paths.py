"""The files that a module loads, according to its imports."""

from __future__ import annotations

import pytest

from suture.project.python_source.parsing import find_importers, imported_paths, loaded_files


@pytest.mark.parametrize(
    ("code", "paths"),
    [
        ("import shop.cart", {"shop/cart"}),
        ("from shop import cart", {"shop", "shop/cart"}),
        ("from .cart import total", {"shop/cart", "shop/cart/total"}),
        ("from . import cart", {"shop", "shop/cart"}),
        ("def f():\n    import json\n", {"json"}),
        ("def (", set()),
    ],
)
def test_the_imported_paths_of_a_file(code: str, paths: set[str]) -> None:
    assert imported_paths(code, "shop/cli.py") == paths


def test_the_files_loaded_with_a_module() -> None:
    files = {
        "shop/__init__.py": "from .money import cents",
        "shop/cart.py": "import os",
        "shop/money.py": "",
        "shop/cli.py": "from shop.cart import total",
        "loop.py": "import loop",
    }

    assert loaded_files(files, ["shop/cart.py"]) == {"shop/__init__.py", "shop/cart.py", "shop/money.py"}
    assert loaded_files(files, ["shop/cli.py"]) == files.keys() - {"loop.py"}
    assert loaded_files(files, ["loop.py", "gone.py"]) == {"loop.py"}


def test_a_package_at_the_root_is_loaded_with_its_modules() -> None:
    files = {"__init__.py": "import logging", "cart.py": "", "shop/till.py": ""}
    assert loaded_files(files, ["cart.py"]) == {"__init__.py", "cart.py"}
    assert loaded_files(files, ["shop/till.py"]) == {"__init__.py", "shop/till.py"}


def test_what_imports_a_module_directly_or_not_wherever_imports_begin() -> None:
    files = {
        "src/shop/__init__.py": "",
        "src/shop/money.py": "",
        "src/shop/cart.py": "from . import money",
        "tests/test_cart.py": "from shop.cart import total",
        "tests/test_shop.py": "import shop",
    }
    assert find_importers(files, ["src/shop/money.py"]) == {"src/shop/cart.py", "tests/test_cart.py"}
    package = find_importers(files, ["src/shop/__init__.py"])
    assert package == {"src/shop/cart.py", "tests/test_cart.py", "tests/test_shop.py"}
    assert find_importers(files, ["tests/test_cart.py"]) == frozenset()
