"""Changes of layout and of unused imports are told from changes of what a file does."""

from __future__ import annotations

import pytest

from suture.project.layout_changes import changes_only_layout


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        ("a.py", "import os\nimport b\nx = [1,2]\n", "import b\n\nx = [1, 2]\n", True),
        ("a.py", "from a import b, c\n", "from a import c\n", True),
        ("a.py", "import b\nx = 1\n", "import b\nx = 2\n", False),
        ("a.py", "from shop import total\n", "from fake import total\n", False),
        ("a.py", "assert f() == 1\n", "assert f()\n", False),
        ("a.py", "x = 1\n", "x = (\n", False),
        ("a.js", "const a = 'b'; f(a,1)\n", 'const a = "b";\nf(a, 1);\n', True),
        ("a.js", "expect(f(1)).toBe(2);\n", "expect(f(1)).toBe(3);\n", False),
        ("a.js", "x = 'a';\n", 'x = "b";\n', False),
        ("a.go", "package a\nfunc f(){g( 1 )}\n", "package a\n\nfunc f() { g(1) }\n", True),
        ("a.js", "expect(a).toBe('b');\n", "expect(a).toBe(b);\n", False),
        ("a.js", "x = [1,,2];\n", "x = [1, 2];\n", False),
        ("a.js", "x = [1, 2,];\n", "x = [1, 2];\n", True),
        ("a.js", "x = [,];\n", "x = [];\n", False),
        ("a.js", "function f() { return x }\n", "function f() { return\nx }\n", False),
        ("a.js", "function f() { return (x) }\n", "function f() { return\n(x) }\n", False),
        ("a.js", "function f() { return };\n", "function f() {\n  return;\n}\n", True),
        ("a.js", "if (a); f();\n", "if (a) f();\n", False),
        ("a.js", "for (; a; ) f();\n", "for (; ; a) f();\n", False),
        ("a.js", "// @jest-environment jsdom\nf();\n", "f();\n", False),
        ("a.js", "f() // c\ng()\n", "f(); // c\ng();\n", True),
        ("a.js", "f(1 +);\n", "f(+ 1 +);\n", False),
        (
            "a.ts",
            "interface A { a: string, b: number }\n",
            "interface A {\n  a: string;\n  b: number;\n}\n",
            True,
        ),
        ("a.ts", "let a: string;\n", "let a: trin;\n", False),
        (
            "a.go",
            "package a\nfunc ExampleF() {\n\tf()\n\t// Output: 5\n}\n",
            "package a\nfunc ExampleF() { f() }\n",
            False,
        ),
        (
            "a.go",
            "package a\nfunc f() {\n// b\nreturn }\n",
            "package a\n\nfunc f() {\n\t// b\n\treturn\n}\n",
            True,
        ),
        ("a.go", "package a\nfunc f() { return g() }\n", "package a\nfunc f() { return\ng() }\n", False),
        ("a.txt", "a", "b", False),
    ],
)
def test_only_layout_and_imports_may_differ(path: str, before: str, after: str, expected: bool) -> None:
    assert changes_only_layout(path, before, after) is expected
