"""The rules of triage that read: surroundings, contradictions, shared state."""

from __future__ import annotations

import ast
import time

import pytest

from suture.judge.triage.contradictions import find_contradictions, find_documented_examples
from suture.judge.triage.environment_faults import fault_of_surroundings
from suture.judge.triage.pollution import find_shared_state_write
from suture.project.workspace import render_exclusion

PROJECT = {
    "shop/__init__.py": b"",
    "shop/prices.py": b"import os\nKEY = os.environ['SHOP_KEY']\nopen('out/log.txt', 'w')\n",
    "data/prices.csv": b"a,b\n",
    "requirements.txt": b"typings-extra>=1\nrequests\n",
}
CODE = [PROJECT["shop/prices.py"].decode()]


@pytest.mark.parametrize(
    ("exception", "why"),
    [
        ("ModuleNotFoundError: No module named 'numpy'", "'numpy' is not installed"),
        ("ModuleNotFoundError: No module named 'numpy.linalg'", "'numpy' is not installed"),
        ("ModuleNotFoundError: No module named 'requests'", "'requests' is not installed"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'fixtures/big.bin'", "'fixtures/big.bin'"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/box/fixtures/big.bin'", "big.bin"),
        ("KeyError: 'SHOP_KEY'", "SHOP_KEY is not set"),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "network"),
        ("Error: unsupported locale setting", "locale"),
        ("OSError: [Errno 101] Network is unreachable", "network"),
        (
            "ClientConnectorDNSError: Cannot connect to host example.org:443 ssl:default "
            "[Temporary failure in name resolution]",
            "network",
        ),
        ("FetchFailed: <urlopen error [Errno -5] No address associated with hostname>", "network"),
    ],
)
def test_a_fault_of_the_surroundings(exception: str, why: str) -> None:
    found = fault_of_surroundings(exception, PROJECT, CODE)
    assert found is not None
    assert why in found[0]


@pytest.mark.parametrize("path", ["notes/a\\tb.txt", "notes"])
def test_a_file_whose_name_cannot_be_written_down_is_there_and_not_copied(path: str) -> None:
    left_out = {"notes/a\\tb.txt": "unprintable_name", "notes.so": "ignored"}
    missing = f"FileNotFoundError: [Errno 2] No such file or directory: '{path}'"
    found = fault_of_surroundings(missing, PROJECT, CODE, left_out)
    assert found == (
        "'notes/a\\tb.txt' is not copied into the sandbox: " + render_exclusion("unprintable_name"),
        "give it another name",
    )


BUILT = {
    "shop/__init__.py": b"",
    "shop/fast.pyx": b"",
    "messages/order.proto": b"",
    "pyproject.toml": b'[tool.setuptools_scm]\nwrite_to = "shop/_version.py"\n',
    ".gitignore": b"shop/_parser.py\n",
}
LEFT_OUT = {"shop/conf.py": "it is in .gitignore, and may hold secrets"}


@pytest.mark.parametrize(
    ("exception", "why"),
    [
        (
            "ModuleNotFoundError: No module named 'shop._version'",
            "written when the project is built, as pyproject",
        ),
        (
            "ImportError: cannot import name '_version' from 'shop' (/box/shop/__init__.py)",
            "as pyproject.toml says",
        ),
        ("ModuleNotFoundError: No module named 'shop._parser'", "as .gitignore says"),
        ("ModuleNotFoundError: No module named 'shop._fast'", "made of 'shop/fast.pyx'"),
        ("ImportError: cannot import name 'order_pb2' from 'shop' (x)", "made of 'messages/order.proto'"),
        ("ModuleNotFoundError: No module named 'shop.conf'", "'shop/conf.py' is not copied into the sandbox"),
    ],
)
def test_a_module_that_a_build_writes_or_that_was_not_copied_is_named(exception: str, why: str) -> None:
    found = fault_of_surroundings(exception, BUILT, (), LEFT_OUT)
    assert found is not None
    assert why in found[0]


@pytest.mark.parametrize(
    "exception",
    [
        "ModuleNotFoundError: No module named 'shop.prices'",
        "ModuleNotFoundError: No module named 'shop.version'",
        "ImportError: cannot import name 'total' from 'shop' (/box/shop/__init__.py)",
        "ImportError: cannot import name 'fast' from 'json' (x)",
    ],
)
def test_a_module_that_no_build_writes_is_the_codes(exception: str) -> None:
    assert fault_of_surroundings(exception, BUILT, (), LEFT_OUT) is None


@pytest.mark.parametrize(
    "exception",
    [
        "ModuleNotFoundError: No module named 'shop.price'",  # the project's own package
        "ModuleNotFoundError: No module named 'prises'",  # nearly the project's own module
        "ModuleNotFoundError: No module named 'jsn'",  # nearly the standard library's
        "FileNotFoundError: [Errno 2] No such file or directory: 'dta/prices.csv'",  # it lies elsewhere
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/price.csv'",  # nearly its name
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/x/report'",  # a test's own folder
        "FileNotFoundError: [Errno 2] No such file or directory: 'log.txt'",  # the code makes it
        "KeyError: 'TOTAL'",  # nobody asks the environment for it
        "OSError: [Errno 28] No space left on device",
        "FetchFailed: Connection refused",  # by a server that the test has started, perhaps
        "AssertionError: 1 != 2",
        "",
    ],
)
def test_a_slip_of_the_code_is_no_fault_of_the_surroundings(exception: str) -> None:
    assert fault_of_surroundings(exception, PROJECT, CODE) is None


TESTED = {
    "shop/prices.py": b"def total(): ...\n",
    "shop/plugin.py": b"import pytest\n\n@pytest.fixture\ndef basket():\n    return []\n\nMARKS = ['dear']\n"
    b"till = pytest.fixture()(total)\n",
    "tests/conftest.py": b"import pytest\n\n@pytest.fixture(\n  scope='session'\n)\ndef customer(): ...\n",
    "tests/test_prices.py": b"def test_total(mocker, custmer): ...\n",
}


@pytest.mark.parametrize(
    ("exception", "why"),
    [
        ("FixtureLookupError: ('mocker', <SubRequest 'mocker' for <Function test_total>>)", "'mocker'"),
        ("FixtureLookupError: ('till', <TopRequest for <Function test_total>>)", None),  # made by a call
        (
            "FixtureLookupError: ('baskett', <TopRequest for <Function test_total>>)",
            None,
        ),  # nearly one of the code's
        (
            "FixtureLookupError: ('custmer', <TopRequest for <Function test_total>>)",
            None,
        ),  # nearly a conftest's
        ("'asyncio' not found in `markers` configuration option", "'asyncio'"),
        ("Failed: 'django_db' not found in `markers` configuration option", "'django_db'"),
        ("Failed: 'dear' not found in `markers` configuration option", None),  # the code registers it
        ("Failed: async def functions are not natively supported.", "`async def`"),
        ("Failed: no", None),
    ],
)
def test_a_plugin_that_is_missing_is_of_the_surroundings(exception: str, why: str | None) -> None:
    found = fault_of_surroundings(exception, TESTED, ())
    assert (found is None) == (why is None), found
    assert found is None or why is None or why in found[0]


def test_a_locale_that_the_code_sets_may_be_its_slip() -> None:
    written = ["locale.setlocale(locale.LC_ALL, 'de_DE.UFT-8')"]
    assert fault_of_surroundings("Error: unsupported locale setting", PROJECT, written) is None


AREA = b'''
def area(w, h=1):
    """The area.

    >>> area(2, 3)
    6
    >>> area("a", 1)
    Traceback (most recent call last):
    TypeError: no
    """
'''


@pytest.mark.parametrize(
    ("body", "tested"),
    [
        ("assert area(2, 3) == 5", "5"),
        ("assert 5 == area(2, 3)", "5"),
        ("assert shapes.area(2, 3) == 5", "5"),
        ("for _ in range(2):\n        assert area(2, 3) == 5", "5"),
        ("assert area(2, 3) == 6", None),
        ("assert area(2, 3) == 6.0", None),
        ("assert area(2, h=3) == 5", None),
        ("assert area(3, 2) == 5", None),
        ("assert area(2, 3) > 5", None),
        ("assert area('a', 1) == 5", None),
        ("assert area(2, 3) == half", None),
    ],
)
def test_what_a_test_wants_is_held_against_the_docstring(body: str, tested: str | None) -> None:
    files = {"shapes.py": AREA, "test_shapes.py": f"def test_area():\n    {body}\n".encode()}
    found = find_contradictions("test_shapes.py::test_area", files, find_documented_examples(files))
    assert [one.tested for one in found] == ([tested] if tested else [])
    if found:
        assert (found[0].call, found[0].documented, found[0].file) == ("area(2, 3)", "6", "shapes.py")


def test_a_file_of_many_failing_tests_is_read_once() -> None:
    count = 2000
    tests = "".join(f"def test_{n}():\n    assert area(2, 3) == {n}\n" for n in range(count)).encode()
    files = {"shapes.py": AREA, "test_shapes.py": tests}
    documented, began_s = find_documented_examples(files), time.process_time()
    found = [find_contradictions(f"test_shapes.py::test_{n}", files, documented) for n in range(count)]
    assert [n for n, one in enumerate(found) if not one] == [6]
    assert time.process_time() - began_s < 20  # a parse takes 0.05 s, and each test had one of its own


def test_a_name_that_is_defined_twice_contradicts_nothing() -> None:
    files = {"a.py": AREA, "b.py": AREA, "test_a.py": b"def test_a():\n    assert area(2, 3) == 5\n"}
    assert find_contradictions("test_a.py::test_a", files, find_documented_examples(files)) == ()


@pytest.mark.parametrize(
    ("test", "statement"),
    [
        ("config.LIMIT = 3", "config.LIMIT = 3"),
        ("os.environ['A'] = 'b'", "os.environ['A'] = 'b'"),
        ("del os.environ['A']", "del os.environ['A']"),
        ("SEEN.append(1)", "SEEN.append(1)"),
        ("config.names().clear()", "config.names().clear()"),
        ("global SEEN", "global SEEN"),
        ("SEEN = []; SEEN.append(1)", ""),
        ("cart = Cart(); cart.total = 3; cart.items.append(1)", ""),
        ("monkeypatch.setattr(config, 'LIMIT', 3)", ""),
        ("assert config.LIMIT == 3", ""),
        ("tmp_path.joinpath('x').write_text('y')", ""),
    ],
)
def test_state_that_outlives_a_test(test: str, statement: str) -> None:
    above = "import os, config\nfrom cart import Cart\nSEEN = []\n\n"
    source = f"{above}def test_it(monkeypatch, tmp_path):\n    {test}\n"
    assert find_shared_state_write(ast.parse(source), "test_it") == statement


def test_a_fixture_writes_for_the_test_that_asks_for_it() -> None:
    source = "import config\n\ndef loud(): config.LEVEL = 9\n\ndef test_a(loud): pass\n\ndef test_b(): pass\n"
    tree = ast.parse(source)
    assert find_shared_state_write(tree, "test_a") == "config.LEVEL = 9"
    assert find_shared_state_write(tree, "test_b") == ""
