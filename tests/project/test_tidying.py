"""Code that a model wrote is tidied: no leftover examples, no spaces inside brackets, and nothing else changes."""

from __future__ import annotations

import pytest

from suture.project.python_source.functions import tidy_module

FUNCTION = "def f(x):\n    return [x]\n"


@pytest.mark.parametrize(
    ("code", "tidied"),
    [
        ("def f( x):\n    return [ x ]", FUNCTION),
        ("def f(x ):\n    return [x]\n\n\n# Example usage\n", FUNCTION),
        (f"{FUNCTION}\n# Example usage:\nnumbers = [1]\nresult = f(numbers)\n# Output: [1]\n", FUNCTION),
        (f"{FUNCTION}\n# Test the function\nif __name__ == '__main__':\n    print(f(1))\n", FUNCTION),
        (
            "def f(x):\n    return (x,  # kept\n        1)\n",
            "def f(x):\n    return (x,  # kept\n        1)\n",
        ),
        ("X = '( a )'\nY = f\"{X}( b )\"\n", "X = '( a )'\nY = f\"{X}( b )\"\n"),
        ("x = (1, )\n", "x = (1, )\n"),
    ],
)
def test_a_module_is_tidied(code: str, tidied: str) -> None:
    assert tidy_module(code) == tidied


@pytest.mark.parametrize(
    "code",
    [
        "# Example of a cache\nCACHE = {}\n\n\ndef f(x):\n    return CACHE[x]\n",
        "def f(x):\n    return LIMIT\n\n\n# Test limit\nLIMIT = 3\n",
        "def f(x:\n",
        'def f():\n    pass\n\n\nTEXT = """\n# Example\n"""\n',
        "# Usage: python solution.py\nprint(1)\n",
    ],
)
def test_what_the_module_needs_stays(code: str) -> None:
    assert tidy_module(code) == code
