"""Replies as real models write them, each with the files that it changes or the problems that it has."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

SHOP = '''"""A shop."""

import os


def total(prices):
    return sum(prices) - 1


def describe(name):
    """Say what it is.

    >>> describe("a")
    'a'
    """
    return f"{name}"


class Cart:
    """A cart."""

    limit = 3

    def __init__(self):
        self.items = []

    @property
    def size(self):
        return 0

    @size.setter
    def size(self, value):
        self.items = [0] * value

    def total(self):
        return 0

    async def fetch(self):
        return None


class Order:
    def total(self):
        return 0

    def cancel(self):
        def inner(reason):
            return reason

        return inner

    class Line:
        def price(self):
            return 1
'''
TAX = "def tax(n):\n    return 0\n\n\ndef untouched(n):\n    return n\n"
JS = """const fs = require('fs');

// Adds.
function add(a, b) {
  return a - b;
}

const twice = (n) => n + n;

class Cart {
  total() {
    return 0;
  }

  get size() {
    return 1;
  }
}

module.exports = { add, twice, Cart };
"""
TS = """import { a } from './a';

export interface Point {
  x: number;
}

export function add(x: number, y: number): number {
  return x - y;
}

export default class Cart {
  private items: number[] = [];

  total(): number {
    return 0;
  }
}
"""
GO = """package clock

import "fmt"

// Add moves.
func Add(a, b int) int {
	return a - b
}

type Clock struct {
	Hours int
}

func (c *Clock) Show() string {
	return fmt.Sprint(c.Hours)
}
"""
README = "# Shop\n\nRun `make`.\n\n```sh\nmake\n```\n"
TABS = "def f(x):\n\tif x:\n\t\treturn 1\n\treturn 2\n"
CRLF = "def f(x):\r\n    return 1\r\n\r\n\r\ndef g(x):\r\n    return 2\r\n"
NO_END = "a = 1\nb = 2\nc = 3\nd = 4"
UMLAUT = 'GREETING = "Grüß Gott – 你好"\n\n\ndef greet():\n    return GREETING + "!"\n'
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1]) == 1\n"

PROJECT = {
    "shop.py": SHOP,
    "lib/__init__.py": "",
    "lib/tax.py": TAX,
    "web/cart.js": JS,
    "web/cart.ts": TS,
    "clock.go": GO,
    "README.md": README,
    "tabs.py": TABS,
    "win.py": CRLF,
    "noend.txt": NO_END,
    "umlaut.py": UMLAUT,
    "a/util.py": "def helper():\n    return 1\n",
    "b/util.py": "def helper():\n    return 2\n",
    "Makefile": "all:\n\tpython shop.py\n\ntest:\n\tpytest\n",
    "tests/test_shop.py": TEST,
}
SHOWN = ("shop.py", "lib/tax.py", "tests/test_shop.py")
PROTECTED = ("tests/test_shop.py",)


@dataclass(frozen=True, kw_only=True)
class ReplyCase:
    """A reply, and what it changes.

    Attributes:
        name: Which habit it shows.
        files: Path -> new text.
        problems: The codes of its problems.
        ignored: The codes of the blocks that are no change.
    """

    name: str
    reply: str
    files: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def swap(path: str, old: str, new: str) -> dict[str, str]:
    """Return the change of one place in a file of the project."""
    assert PROJECT[path].count(old) == 1, (path, old)
    return {path: PROJECT[path].replace(old, new)}


FIXED_SHOP = SHOP.replace("sum(prices) - 1", "sum(prices)")
FIX = {"shop.py": FIXED_SHOP}
TAX_FIX = {"lib/tax.py": TAX.replace("return 0", "return n // 5")}
CART_TOTAL = swap("shop.py", "    def total(self):\n        return 0\n\n    async", "    def total(self):\n        return sum(self.items)\n\n    async")  # fmt: skip
ORDER_TOTAL = swap("shop.py", "class Order:\n    def total(self):\n        return 0\n", "class Order:\n    def total(self):\n        return sum(self.items)\n")  # fmt: skip
TOTAL_METHOD = "def total(self):\n    return sum(self.items)\n"
JS_FIX = swap("web/cart.js", "a - b", "a + b")
TS_FIX = swap("web/cart.ts", "x - y", "x + y")
GO_FIX = swap("clock.go", "a - b", "a + b")
SEARCH = "<<<<<<< SEARCH\n    return sum(prices) - 1\n=======\n    return sum(prices)\n>>>>>>> REPLACE\n"
DIFF = """--- a/shop.py
+++ b/shop.py
@@ -6,3 +6,3 @@

 def total(prices):
-    return sum(prices) - 1
+    return sum(prices)
"""

WHOLE_FILES = [
    ReplyCase(name="path in a heading", reply=f"### shop.py\n```python\n{FIXED_SHOP}```\n", files=FIX),
    ReplyCase(
        name="gpt: bold path and prose",
        reply=f"Here is the corrected code.\n\n**shop.py**\n\n```python\n{FIXED_SHOP}```\n\nNow it adds up.",
        files=FIX,
    ),
    ReplyCase(name="path joined to the label", reply=f"```python:shop.py\n{FIXED_SHOP}```", files=FIX),
    ReplyCase(name="path behind the label", reply=f"```python shop.py\n{FIXED_SHOP}```", files=FIX),
    ReplyCase(
        name="title in the info string", reply=f'```python title="shop.py"\n{FIXED_SHOP}```', files=FIX
    ),
    ReplyCase(
        name="filename in the info string", reply=f"```py filename=shop.py\n{FIXED_SHOP}```", files=FIX
    ),
    ReplyCase(name="qwen: comment at the top", reply=f"```python\n# shop.py\n{FIXED_SHOP}```", files=FIX),
    ReplyCase(
        name="js comment at the top",
        reply=f"```js\n// web/cart.js\n{JS_FIX['web/cart.js']}```",
        files=JS_FIX,
    ),
    ReplyCase(name="File: path", reply=f"File: shop.py\n```python\n{FIXED_SHOP}```", files=FIX),
    ReplyCase(name="File: path in backticks", reply=f"File: `shop.py`\n\n```\n{FIXED_SHOP}```", files=FIX),
    ReplyCase(name="claude: file tag", reply=f'<file path="shop.py">\n{FIXED_SHOP}</file>', files=FIX),
    ReplyCase(
        name="file tag with a fence inside",
        reply=f'<file path="shop.py">\n```python\n{FIXED_SHOP}```\n</file>',
        files=FIX,
    ),
    ReplyCase(
        name="cline: write_to_file",
        reply=f"<write_to_file>\n<path>shop.py</path>\n<content>\n{FIXED_SHOP}</content>\n</write_to_file>",
        files=FIX,
    ),
    ReplyCase(
        name="prose names the file",
        reply=f"Here's the updated `shop.py`:\n\n```python\n{FIXED_SHOP}```",
        files=FIX,
    ),
    ReplyCase(name="no path, known by its definitions", reply=f"```python\n{FIXED_SHOP}```", files=FIX),
    ReplyCase(name="no fence at all", reply=FIXED_SHOP, files=FIX),
    ReplyCase(name="closing fence missing", reply=f"### shop.py\n```python\n{FIXED_SHOP}", files=FIX),
    ReplyCase(
        name="folder of the model's machine",
        reply=f"### /workspace/project/lib/tax.py\n```python\n{TAX_FIX['lib/tax.py']}```",
        files=TAX_FIX,
    ),
    ReplyCase(
        name="folders left out", reply=f"`tax.py`\n```python\n{TAX_FIX['lib/tax.py']}```", files=TAX_FIX
    ),
    ReplyCase(
        name="a definition is deleted by the whole file",
        reply="### shop.py\n```python\n"
        + FIXED_SHOP.replace(
            "    def cancel(self):\n        def inner(reason):\n            return reason\n\n        return inner\n\n",
            "",
        )
        + "```",  # fmt: skip
        files={
            "shop.py": FIXED_SHOP.replace(
                "    def cancel(self):\n        def inner(reason):\n            return reason\n\n        return inner\n\n",
                "",
            )
        },  # fmt: skip
    ),
    ReplyCase(
        name="two files",
        reply=f"### shop.py\n```python\n{FIXED_SHOP}```\n\n### lib/tax.py\n```python\n{TAX_FIX['lib/tax.py']}```",
        files=FIX | TAX_FIX,
    ),
    ReplyCase(
        name="gemini: numbered list with paths",
        reply=f"1. **`shop.py`**\n\n   ```python\n{''.join('   ' + line if line.strip() else line for line in FIXED_SHOP.splitlines(True))}   ```\n",  # fmt: skip
        files=FIX,
    ),
    ReplyCase(
        name="file that was not shown",
        reply=f"### umlaut.py\n```python\n{UMLAUT.replace('!', '?')}```",
        files=swap("umlaut.py", "!", "?"),
    ),
    ReplyCase(
        name="line endings of Windows stay",
        reply="### win.py\n```python\n" + CRLF.replace("\r", "").replace("return 1", "return 3") + "```",
        files=swap("win.py", "return 1", "return 3"),
    ),
    ReplyCase(
        name="no newline at the end stays",
        reply="### noend.txt\n```\na = 1\nb = 2\nc = 5\nd = 4\n```",
        files=swap("noend.txt", "c = 3", "c = 5"),
    ),
    ReplyCase(
        name="markdown file with a fence in it",
        reply="### README.md\n````markdown\n" + README.replace("Run `make`.", "Run `make all`.") + "````",
        files=swap("README.md", "Run `make`.", "Run `make all`."),
    ),
    ReplyCase(
        name="makefile",
        reply="**Makefile**\n```makefile\nall:\n\tpython3 shop.py\n\ntest:\n\tpytest\n```",
        files=swap("Makefile", "python shop", "python3 shop"),
    ),
    ReplyCase(
        name="new file and an empty package file",
        reply="### lib/new/__init__.py\n```python\n```\n\n### lib/new/rates.py\n```python\nRATE = 3\n```",
        files={"lib/new/__init__.py": "", "lib/new/rates.py": "RATE = 3\n"},
    ),
    ReplyCase(
        name="deepseek: heredoc",
        reply="```bash\ncat > lib/rates.py << 'EOF'\nRATE = 3\nEOF\npython -m pytest\n```",
        files={"lib/rates.py": "RATE = 3\n"},
    ),
    ReplyCase(
        name="go file",
        reply=f"`clock.go`:\n```go\n{GO_FIX['clock.go']}```",
        files=GO_FIX,
    ),
]

DEFINITIONS = [
    ReplyCase(
        name="function replaces its namesake",
        reply="Fix `total`:\n```python\ndef total(prices):\n    return sum(prices)\n```",
        files=FIX,
    ),
    ReplyCase(
        name="method never replaces a function: class named in the prose",
        reply=f"The bug is in `Cart.total` in shop.py:\n```python\n{TOTAL_METHOD}```",
        files=CART_TOTAL,
    ),
    ReplyCase(
        name="method in its class header",
        reply="```python\nclass Order:\n    def total(self):\n        return sum(self.items)\n```",
        files=ORDER_TOTAL,
    ),
    ReplyCase(
        name="class header with elisions around the method",
        reply="```python\nclass Order:\n    # ... existing code ...\n\n    def total(self):\n        return sum(self.items)\n\n    # ... rest of the class ...\n```",  # fmt: skip
        files=ORDER_TOTAL,
    ),
    ReplyCase(
        name="method with its class in a comment",
        reply=f"```python\n# shop.py, class Order\n{TOTAL_METHOD}```",
        files=ORDER_TOTAL,
    ),
    ReplyCase(
        name="method of two classes is ambiguous",
        reply=f"```python\n{TOTAL_METHOD}```",
        problems=("ambiguous_definition",),
    ),
    ReplyCase(
        name="other method of the snippet shows the class",
        reply=f"```python\n{TOTAL_METHOD}\n\ndef __init__(self):\n    self.items = [1]\n```",
        files={"shop.py": CART_TOTAL["shop.py"].replace("self.items = []", "self.items = [1]")},
    ),
    ReplyCase(
        name="indented method with only its first line at the margin",
        reply="In `Order`:\n```python\ndef total(self):\n        return sum(self.items)\n```",
        files={
            "shop.py": ORDER_TOTAL["shop.py"].replace(
                "        return sum(self.items)", "            return sum(self.items)"
            )
        },  # fmt: skip
    ),
    ReplyCase(
        name="method of a nested class",
        reply="```python\ndef price(self):\n    return 2\n```",
        files=swap("shop.py", "return 1\n", "return 2\n"),
    ),
    ReplyCase(
        name="function inside a method",
        reply="```python\n        def inner(reason):\n            return reason.strip()\n```",
        files=swap("shop.py", "return reason\n", "return reason.strip()\n"),
    ),
    ReplyCase(
        name="property setter",
        reply="```python\n@size.setter\ndef size(self, value):\n    self.items = [1] * value\n```",
        files=swap("shop.py", "[0] * value", "[1] * value"),
    ),
    ReplyCase(
        name="async method",
        reply="```python\n    async def fetch(self):\n        return self.items\n```",
        files=swap("shop.py", "return None", "return self.items"),
    ),
    ReplyCase(
        name="several functions in one block",
        reply="```python\ndef total(prices):\n    return sum(prices)\n\n\ndef describe(name):\n    return name.title()\n```",  # fmt: skip
        files={
            "shop.py": FIXED_SHOP.replace(
                '    """Say what it is.\n\n    >>> describe("a")\n    \'a\'\n    """\n    return f"{name}"',
                "    return name.title()",
            )
        },  # fmt: skip
    ),
    ReplyCase(
        name="import and helper beside a function",
        reply="```python\nimport math\n\n\ndef _round(x):\n    return math.floor(x)\n\n\ndef total(prices):\n    return _round(sum(prices))\n```",  # fmt: skip
        files={
            "shop.py": SHOP.replace('"""A shop."""\n', '"""A shop."""\nimport math\n').replace(
                "def total(prices):\n    return sum(prices) - 1\n",
                "def _round(x):\n    return math.floor(x)\n\n\ndef total(prices):\n    return _round(sum(prices))\n",
            )
        },  # fmt: skip
    ),
    ReplyCase(
        name="new method beside a known one",
        reply="```python\nclass Order:\n    def total(self):\n        return sum(self.items)\n\n    def clear(self):\n        self.items = []\n```",  # fmt: skip
        files={
            "shop.py": SHOP.replace(
                "class Order:\n    def total(self):\n        return 0\n",
                "class Order:\n    def clear(self):\n        self.items = []\n\n    def total(self):\n        return sum(self.items)\n",
            )
        },  # fmt: skip
    ),
    ReplyCase(
        name="function of a file that was not shown",
        reply='```python\ndef greet():\n    return GREETING + "?"\n```',
        files=swap("umlaut.py", "!", "?"),
    ),
    ReplyCase(
        name="function in two files that were not shown",
        reply="```python\ndef helper():\n    return 3\n```",
        problems=("several_files",),
    ),
    ReplyCase(
        name="function in two files, one of them named in the prose",
        reply="In b/util.py the number is wrong:\n\n```python\ndef helper():\n    return 3\n```",
        files=swap("b/util.py", "return 2", "return 3"),
    ),
    ReplyCase(
        name="body with an elision",
        reply="```python\ndef total(prices):\n    # ... existing code ...\n    return sum(prices)\n```",
        problems=("elided",),
    ),
    ReplyCase(
        name="function that does not parse",
        reply="### shop.py\n```python\ndef total(prices:\n    return sum(prices)\n```",
        problems=("syntax_error",),
    ),
    ReplyCase(
        name="js function",
        reply="```javascript\nfunction add(a, b) {\n  return a + b;\n}\n```",
        files=JS_FIX,
    ),
    ReplyCase(
        name="js arrow function",
        reply="### web/cart.js\n```js\nconst twice = (n) => 2 * n;\n```",
        files=swap("web/cart.js", "n + n", "2 * n"),
    ),
    ReplyCase(
        name="js method without its class",
        reply="### web/cart.js\n```js\ntotal() {\n  return 5;\n}\n```",
        files=swap("web/cart.js", "return 0", "return 5"),
    ),
    ReplyCase(
        name="js class with one method",
        reply="### web/cart.js\n```js\nclass Cart {\n  // ...\n\n  total() {\n    return 5;\n  }\n}\n```",
        files=swap("web/cart.js", "return 0", "return 5"),
    ),
    ReplyCase(
        name="js new function",
        reply="### web/cart.js\n```js\nfunction sub(a, b) {\n  return a - b;\n}\n```",
        files=swap(
            "web/cart.js", "module.exports", "function sub(a, b) {\n  return a - b;\n}\n\nmodule.exports"
        ),
    ),
    ReplyCase(
        name="ts function without export, and an import",
        reply="`web/cart.ts`\n```ts\nimport { a, b } from './a';\n\nfunction add(x: number, y: number): number {\n  return x + y;\n}\n```",  # fmt: skip
        files={"web/cart.ts": TS_FIX["web/cart.ts"].replace("{ a }", "{ a, b }")},
    ),
    ReplyCase(
        name="ts method of the default class",
        reply="`web/cart.ts`\n```ts\n  total(): number {\n    return this.items.length;\n  }\n```",
        files=swap("web/cart.ts", "return 0", "return this.items.length"),
    ),
    ReplyCase(
        name="go function with its package",
        reply="```go\npackage clock\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n```",
        files={"clock.go": GO_FIX["clock.go"].replace("// Add moves.", "// Add adds.")},
    ),
    ReplyCase(
        name="go method and a new import",
        reply='### clock.go\n```go\nimport "strconv"\n\nfunc (c *Clock) Show() string {\n\treturn strconv.Itoa(c.Hours)\n}\n```',  # fmt: skip
        files={
            "clock.go": GO.replace('import "fmt"\n', 'import "fmt"\nimport "strconv"\n').replace(
                "fmt.Sprint", "strconv.Itoa"
            )
        },  # fmt: skip
    ),
    ReplyCase(
        name="part of a language that is not parsed",
        reply="### README.md\n```markdown\nRun `make all`.\n```",
        problems=("partial_file",),
    ),
]

EDIT_BLOCKS = [
    ReplyCase(name="aider: path above, fenced", reply=f"shop.py\n```python\n{SEARCH}```", files=FIX),
    ReplyCase(name="aider: path inside the fence", reply=f"```python\nshop.py\n{SEARCH}```", files=FIX),
    ReplyCase(name="no fence, heading", reply=f"### shop.py\n{SEARCH}", files=FIX),
    ReplyCase(name="no path at all", reply=f"Change this:\n\n{SEARCH}", files=FIX),
    ReplyCase(
        name="several blocks below one path",
        reply=f"### shop.py\n{SEARCH}\n<<<<<<< SEARCH\n    limit = 3\n=======\n    limit = 4\n>>>>>>> REPLACE\n",
        files={"shop.py": FIXED_SHOP.replace("limit = 3", "limit = 4")},
    ),
    ReplyCase(
        name="lost indentation",
        reply="### shop.py\n<<<<<<< SEARCH\nreturn sum(prices) - 1\n=======\nif not prices:\n    return 0\nreturn sum(prices)\n>>>>>>> REPLACE\n",  # fmt: skip
        files=swap(
            "shop.py",
            "    return sum(prices) - 1\n",
            "    if not prices:\n        return 0\n    return sum(prices)\n",
        ),  # fmt: skip
    ),
    ReplyCase(
        name="blanks in place of tabs",
        reply="### tabs.py\n<<<<<<< SEARCH\n    if x:\n        return 1\n=======\n    if x > 0:\n        return 3\n>>>>>>> REPLACE\n",  # fmt: skip
        files=swap("tabs.py", "\tif x:\n\t\treturn 1\n", "\tif x > 0:\n\t\treturn 3\n"),
    ),
    ReplyCase(
        name="trailing blanks and a missing blank line",
        reply="### shop.py\n<<<<<<< SEARCH\nimport os  \n\ndef total(prices):\n    return sum(prices) - 1\n=======\nimport os\n\ndef total(prices):\n    return sum(prices)\n>>>>>>> REPLACE\n",  # fmt: skip
        files={"shop.py": FIXED_SHOP},
    ),
    ReplyCase(
        name="typographic dash",
        reply='### umlaut.py\n<<<<<<< SEARCH\nGREETING = “Grüß Gott - 你好”\n=======\nGREETING = "Servus"\n>>>>>>> REPLACE\n',  # fmt: skip
        files=swap("umlaut.py", "Grüß Gott – 你好", "Servus"),
    ),
    ReplyCase(
        name="windows lines",
        reply="### win.py\n<<<<<<< SEARCH\ndef f(x):\n    return 1\n=======\ndef f(x):\n    return 3\n>>>>>>> REPLACE\n",  # fmt: skip
        files=swap("win.py", "return 1", "return 3"),
    ),
    ReplyCase(
        name="elision in the search text",
        reply="### shop.py\n<<<<<<< SEARCH\nclass Cart:\n    ...\n    def total(self):\n=======\nclass Cart:\n    ...\n    def total(self, x):\n>>>>>>> REPLACE\n",  # fmt: skip
        problems=("elided",),
    ),
    ReplyCase(
        name="text is there twice",
        reply="### shop.py\n<<<<<<< SEARCH\n    def total(self):\n=======\n    def total(self, x):\n>>>>>>> REPLACE\n",  # fmt: skip
        problems=("text_repeats",),
    ),
    ReplyCase(
        name="text is not there",
        reply="### shop.py\n<<<<<<< SEARCH\n    return sum(prices) + 5\n=======\n    return 1\n>>>>>>> REPLACE\n",
        problems=("text_not_found",),
    ),
    ReplyCase(
        name="one of two edits of a file fails: the file stays as it is, the other file changes",
        reply=f"### shop.py\n{SEARCH}<<<<<<< SEARCH\nnowhere at all\n=======\nx\n>>>>>>> REPLACE\n\n### lib/tax.py\n<<<<<<< SEARCH\n    return 0\n=======\n    return n // 5\n>>>>>>> REPLACE\n",  # fmt: skip
        files=TAX_FIX,
        problems=("text_not_found",),
    ),
    ReplyCase(
        name="a second thought replaces the first one",
        reply="### shop.py\n<<<<<<< SEARCH\n    return sum(prices) - 1\n=======\n    return 0\n>>>>>>> REPLACE\n\nWait, that is wrong.\n\n### shop.py\n"  # fmt: skip
        + SEARCH,
        files=FIX,
        ignored=("superseded",),
    ),
    ReplyCase(
        name="new file",
        reply="### lib/rates.py\n<<<<<<< SEARCH\n=======\nRATE = 3\n>>>>>>> REPLACE\n",
        files={"lib/rates.py": "RATE = 3\n"},
    ),  # fmt: skip
    ReplyCase(
        name="cut off",
        reply="### shop.py\n<<<<<<< SEARCH\n    return sum(prices) - 1\n=======\n    return",
        problems=("incomplete",),
    ),  # fmt: skip
    ReplyCase(
        name="lines of a fence in the text",
        reply="README.md\n```markdown\n<<<<<<< SEARCH\n```sh\nmake\n```\n=======\n```sh\nmake all\n```\n>>>>>>> REPLACE\n```\n",  # fmt: skip
        files=swap("README.md", "\nmake\n", "\nmake all\n"),
    ),
    ReplyCase(
        name="cline: replace_in_file",
        reply=f"<replace_in_file>\n<path>shop.py</path>\n<diff>\n{SEARCH}</diff>\n</replace_in_file>",
        files=FIX,
    ),  # fmt: skip
]

DIFFS = [
    ReplyCase(
        name="git diff",
        reply=f"```diff\ndiff --git a/shop.py b/shop.py\nindex 1234567..89abcde 100644\n{DIFF}```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="plain diff",
        reply=f"```diff\n{DIFF.replace('a/shop', 'shop').replace('b/shop', 'shop')}```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(name="diff without a fence", reply=f"Here is the patch:\n\n{DIFF}\nThat is all.", files=FIX),
    ReplyCase(
        name="wrong line numbers and counts",
        reply=f"```diff\n{DIFF.replace('@@ -6,3 +6,3 @@', '@@ -60,11 +61,9 @@')}```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="hunk header without numbers",
        reply=f"```diff\n{DIFF.replace('@@ -6,3 +6,3 @@', '@@')}```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="hunk header with dots",
        reply=f"```diff\n{DIFF.replace('@@ -6,3 +6,3 @@', '@@ ... @@')}```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="no file header",
        reply="In `shop.py`:\n```diff\n-    return sum(prices) - 1\n+    return sum(prices)\n```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="context without its blank",
        reply="```diff\n--- a/shop.py\n+++ b/shop.py\n@@ -7,2 +7,2 @@\ndef total(prices):\n-    return sum(prices) - 1\n+    return sum(prices)\n```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="same lines twice, told apart by the section",
        reply="```diff\n--- a/shop.py\n+++ b/shop.py\n@@ -40,2 +40,2 @@ class Order:\n     def total(self):\n-        return 0\n+        return sum(self.items)\n```",  # fmt: skip
        files=ORDER_TOTAL,
    ),
    ReplyCase(
        name="several files, one new",
        reply=f"```diff\n{DIFF}--- a/lib/tax.py\n+++ b/lib/tax.py\n@@ -1,2 +1,2 @@\n def tax(n):\n-    return 0\n+    return n // 5\n--- /dev/null\n+++ b/lib/rates.py\n@@ -0,0 +1 @@\n+RATE = 3\n```",  # fmt: skip
        files=FIX | TAX_FIX | {"lib/rates.py": "RATE = 3\n"},
    ),
    ReplyCase(
        name="new empty file by git",
        reply="```diff\ndiff --git a/lib/new/__init__.py b/lib/new/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n```",  # fmt: skip
        files={"lib/new/__init__.py": ""},
    ),
    ReplyCase(
        name="deletion",
        reply=f"```diff\n{DIFF}--- a/lib/tax.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-def tax(n):\n-    return 0\n```",
        files=FIX,
        problems=("deletes_file",),
    ),
    ReplyCase(
        name="rename",
        reply="```diff\ndiff --git a/lib/tax.py b/lib/vat.py\nsimilarity index 100%\nrename from lib/tax.py\nrename to lib/vat.py\n```",  # fmt: skip
        problems=("deletes_file",),
    ),
    ReplyCase(
        name="only an insertion",
        reply="```diff\n--- a/shop.py\n+++ b/shop.py\n@@ -3,0 +4 @@\n+import sys\n```",
        files=swap("shop.py", "import os\n", "import os\nimport sys\n"),
    ),
    ReplyCase(
        name="diff of a protected test",
        reply="```diff\n--- a/tests/test_shop.py\n+++ b/tests/test_shop.py\n@@ -5 +5 @@\n-    assert total([1]) == 1\n+    assert total([1]) == 0\n```",
        problems=("protected",),
    ),  # fmt: skip
]

PATCHES = [
    ReplyCase(
        name="gpt: apply_patch",
        reply="*** Begin Patch\n*** Update File: shop.py\n@@ def total(prices):\n-    return sum(prices) - 1\n+    return sum(prices)\n*** End Patch",  # fmt: skip
        files=FIX,
    ),
    ReplyCase(
        name="gpt: apply_patch in a heredoc",
        reply="```bash\napply_patch <<'EOF'\n*** Begin Patch\n*** Update File: shop.py\n@@\n def total(prices):\n-    return sum(prices) - 1\n+    return sum(prices)\n*** End Patch\nEOF\n```",  # fmt: skip
        files=FIX,
    ),
    ReplyCase(
        name="apply_patch with class and method",
        reply="*** Begin Patch\n*** Update File: shop.py\n@@ class Order:\n@@     def total(self):\n-        return 0\n+        return sum(self.items)\n*** End Patch",  # fmt: skip
        files=ORDER_TOTAL,
    ),
    ReplyCase(
        name="apply_patch adds and updates",
        reply="*** Begin Patch\n*** Add File: lib/rates.py\n+RATE = 3\n+\n+OTHER = 4\n*** Update File: lib/tax.py\n@@\n-    return 0\n+    return n // 5\n*** End Patch",  # fmt: skip
        files=TAX_FIX | {"lib/rates.py": "RATE = 3\n\nOTHER = 4\n"},
    ),
    ReplyCase(
        name="apply_patch deletes and moves",
        reply="*** Begin Patch\n*** Delete File: lib/tax.py\n*** Update File: shop.py\n*** Move to: store.py\n@@\n-import os\n+import sys\n*** End Patch",  # fmt: skip
        problems=("deletes_file", "deletes_file"),
    ),
    ReplyCase(
        name="apply_patch as json",
        reply=json.dumps(
            {
                "name": "apply_patch",
                "arguments": {
                    "input": "*** Begin Patch\n*** Update File: shop.py\n@@\n-    return sum(prices) - 1\n+    return sum(prices)\n*** End Patch"
                },
            }
        ),  # fmt: skip
        files=FIX,
    ),
]
OLD, NEW = "    return sum(prices) - 1", "    return sum(prices)"
TOOLS = [
    ReplyCase(
        name="claude: str_replace",
        reply=json.dumps({"command": "str_replace", "path": "/repo/shop.py", "old_str": OLD, "new_str": NEW}),
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="claude code: Edit in a fence",
        reply="```json\n"
        + json.dumps({"file_path": "shop.py", "old_string": OLD, "new_string": NEW}, indent=2)
        + "\n```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="part of a line",
        reply=json.dumps({"path": "shop.py", "old_str": "(prices) - 1", "new_str": "(prices)"}),
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="gemini: replace",
        reply=json.dumps(
            {
                "name": "replace",
                "args": {"file_path": "/home/me/shop.py", "old_string": OLD, "new_string": NEW},
            }
        ),
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="claude code: MultiEdit",
        reply=json.dumps(
            {
                "file_path": "shop.py",
                "edits": [
                    {"old_string": OLD, "new_string": NEW},
                    {"old_string": "limit = 3", "new_string": "limit = 4"},
                ],
            }
        ),  # fmt: skip
        files={"shop.py": FIXED_SHOP.replace("limit = 3", "limit = 4")},
    ),
    ReplyCase(
        name="everywhere",
        reply=json.dumps(
            {"path": "shop.py", "old_string": "return 0", "new_string": "return 7", "replace_all": True}
        ),
        files={"shop.py": SHOP.replace("return 0", "return 7")},
    ),  # fmt: skip
    ReplyCase(
        name="create",
        reply=json.dumps({"command": "create", "path": "lib/rates.py", "file_text": "RATE = 3\n"}),
        files={"lib/rates.py": "RATE = 3\n"},
    ),  # fmt: skip
    ReplyCase(
        name="create an empty package file",
        reply=json.dumps({"command": "create", "path": "lib/new/__init__.py", "file_text": ""}),
        files={"lib/new/__init__.py": ""},
    ),  # fmt: skip
    ReplyCase(
        name="insert",
        reply=json.dumps(
            {"command": "insert", "path": "shop.py", "insert_line": 3, "new_str": "import sys\n"}
        ),
        files=swap("shop.py", "import os\n", "import os\nimport sys\n"),
    ),  # fmt: skip
    ReplyCase(
        name="insert behind the end",
        reply=json.dumps({"command": "insert", "path": "shop.py", "insert_line": 300, "new_str": "x"}),
        problems=("line_out_of_range",),
    ),  # fmt: skip
    ReplyCase(
        name="delete", reply=json.dumps({"command": "delete", "path": "shop.py"}), problems=("deletes_file",)
    ),
    ReplyCase(
        name="openai: tool_calls with arguments as text",
        reply=json.dumps(
            {
                "tool_calls": [
                    {
                        "type": "function",
                        "function": {
                            "name": "edit_file",
                            "arguments": json.dumps({"path": "shop.py", "old_str": OLD, "new_str": NEW}),
                        },
                    }
                ]
            }
        ),  # fmt: skip
        files=FIX,
    ),
    ReplyCase(
        name="qwen: tool_call tag",
        reply="<tool_call>\n"
        + json.dumps(
            {
                "name": "str_replace_editor",
                "arguments": {"command": "str_replace", "path": "shop.py", "old_str": OLD, "new_str": NEW},
            }
        )
        + "\n</tool_call>",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="qwen coder: function tag",
        reply=f"<tool_call>\n<function=str_replace_editor>\n<parameter=command>\nstr_replace\n</parameter>\n<parameter=path>\nshop.py\n</parameter>\n<parameter=old_str>\n{OLD}\n</parameter>\n<parameter=new_str>\n{NEW}\n</parameter>\n</function>\n</tool_call>",  # fmt: skip
        files=FIX,
    ),
    ReplyCase(
        name="claude: invoke tag",
        reply=f'<invoke name="str_replace_based_edit_tool">\n<parameter name="command">str_replace</parameter>\n<parameter name="path">shop.py</parameter>\n<parameter name="old_str">{OLD}</parameter>\n<parameter name="new_str">{NEW}</parameter>\n</invoke>',  # fmt: skip
        files=FIX,
    ),
    ReplyCase(
        name="json files as a map",
        reply=json.dumps({"shop.py": FIXED_SHOP, "lib/rates.py": "RATE = 3\n"}),
        files=FIX | {"lib/rates.py": "RATE = 3\n"},
    ),  # fmt: skip
    ReplyCase(
        name="json files as a list",
        reply="```json\n"
        + json.dumps({"explanation": "It adds.", "files": [{"path": "shop.py", "content": FIXED_SHOP}]})
        + "\n```",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="json with raw line feeds",
        reply='{"path": "shop.py", "search": "' + OLD + '\n", "replace": "' + NEW + '\n"}',
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="json in prose",
        reply="I will edit the file.\n"
        + json.dumps({"path": "shop.py", "old_str": OLD, "new_str": NEW})
        + "\nDone.",
        files=FIX,
    ),  # fmt: skip
    ReplyCase(
        name="python literal",
        reply=f"{{'path': 'shop.py', 'old_str': '''{OLD}''', 'new_str': '''{NEW}'''}}",
        files=FIX,
    ),  # fmt: skip
]

MIXED = [
    ReplyCase(
        name="old code is quoted before the fix",
        reply="The current code:\n```python\ndef total(prices):\n    return sum(prices) - 1\n```\nThe fix:\n```python\ndef total(prices):\n    return sum(prices)\n```",  # fmt: skip
        files=FIX,
        ignored=("quotation",),
    ),
    ReplyCase(
        name="failing test is quoted",
        reply=f"The test:\n```python\n{TEST}```\nFix:\n### shop.py\n{SEARCH}",
        files=FIX,
        ignored=("quotation",),
    ),
    ReplyCase(
        name="log is quoted",
        reply=f"```\nE   assert 0 == 1\nE    +  where 0 = total([1])\n```\n### shop.py\n{SEARCH}Run it:\n```bash\npytest -q\n```",  # fmt: skip
        files=FIX,
        ignored=("output", "shell"),
    ),
    ReplyCase(
        name="example of use",
        reply="```python\ndef total(prices):\n    return sum(prices)\n```\nUsage:\n```python\nprint(total([1, 2]))\n```",
        files=FIX,
        ignored=("example",),
    ),
    ReplyCase(
        name="last of two whole files wins",
        reply=f"### shop.py\n```python\n{SHOP.replace('- 1', '+ 1')}```\nBetter:\n### shop.py\n```python\n{FIXED_SHOP}```",  # fmt: skip
        files=FIX,
        ignored=("superseded",),
    ),
    ReplyCase(
        name="edit, then the result in full",
        reply=f"### shop.py\n{SEARCH}\nThe file is now:\n### shop.py\n```python\n{FIXED_SHOP}```",
        files=FIX,
        ignored=("already_applied",),
    ),
    ReplyCase(
        name="function and diff of the same change",
        reply=f"```python\ndef total(prices):\n    return sum(prices)\n```\nAs a diff:\n```diff\n{DIFF}```",
        files=FIX,
        ignored=("already_applied",),
    ),
    ReplyCase(
        name="edit and new file",
        reply=f"### shop.py\n{SEARCH}### lib/rates.py\n```python\nRATE = 3\n```",
        files=FIX | {"lib/rates.py": "RATE = 3\n"},
    ),
    ReplyCase(
        name="protected test is rewritten",
        reply="### tests/test_shop.py\n```python\ndef test_total():\n    assert True\n```",
        problems=("protected",),
    ),
    ReplyCase(
        name="path outside of the project",
        reply="### ../evil.py\n```python\nx = 1\n```",
        problems=("bad_path",),
    ),
    ReplyCase(
        name="edit of a file that does not exist",
        reply=f"### store.py\n{SEARCH}",
        problems=("no_such_file",),
    ),
    ReplyCase(name="no change at all", reply="The code is right as it is."),
    ReplyCase(name="only a command", reply="```bash\npytest\n```", ignored=("shell",)),
    ReplyCase(
        name="block was cut off",
        reply="### lib/tax.py\n```python\ndef tax(n):\n    if n:\n        return (n +",
        problems=("incomplete",),
    ),
]

REPLIES = [*WHOLE_FILES, *DEFINITIONS, *EDIT_BLOCKS, *DIFFS, *PATCHES, *TOOLS, *MIXED]
