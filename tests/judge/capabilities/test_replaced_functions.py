"""New uses that matter only by what the tests do: they replace a function, call one of a package, or compare texts."""

from __future__ import annotations

import pytest

from suture.core.records import CapabilityUse
from suture.judge.capabilities import find_change_capabilities

POLLER = (
    "class Poller { start(ask) { setInterval(ask, 9); return Date.now(); } }\nmodule.exports = { Poller };\n"
)
UNDATED = POLLER.replace("Date.now()", "ask.at").replace("setInterval(", "ask.every(")
KEEPING = POLLER.replace("setInterval(", "every(")
TIMED = {"poller.test.js": "t.mock.timers.enable({ apis: ['setInterval'] });"}


def find_uses(files: dict[str, str], after: dict[str, str]) -> tuple[CapabilityUse, ...]:
    return find_change_capabilities({path: text.encode() for path, text in files.items()}, after)


@pytest.mark.parametrize(
    "text",
    [
        f"const every = setInterval;\n{KEEPING}",
        f"const every = setInterval.bind(globalThis);\n{KEEPING}",
        f"const {{ setInterval: every }} = globalThis;\n{KEEPING}",
        f"const every = (() => setInterval)();\n{KEEPING}",
        f"import {{ setInterval }} from 'node:timers';\n{POLLER}",
        POLLER.replace("{ start", "{ static every = setInterval; start").replace(
            " setInterval(", " Poller.every("
        ),
    ],
)
def test_a_timer_that_code_keeps_from_before_the_tests_replace_it_is_reported(text: str) -> None:
    (use,) = find_uses({"poller.js": POLLER, **TIMED}, {"poller.js": text})
    assert (use.code, use.name, use.line) == ("hides_effects", "original of setInterval", 1)
    assert not find_uses({"poller.js": POLLER}, {"poller.js": text})  # no test replaces a timer


def test_a_timer_may_be_kept_in_another_file() -> None:
    after = {"poller.js": f"const {{ every }} = require('./clock');\n{KEEPING}"}
    after["clock.js"] = "module.exports = { every: setInterval };\n"
    (use,) = find_uses({"poller.js": POLLER, **TIMED}, after)
    assert (use.code, use.path) == ("hides_effects", "clock.js")


@pytest.mark.parametrize(
    "text",
    [
        f"const every = setInterval;\n{POLLER}",
        POLLER.replace("start(ask) { set", "start(ask, every = setInterval) { every(ask); set"),
        POLLER.replace("start(ask) { setInterval", "start(ask, every = setInterval) { every"),
        f"const isTimed = typeof setInterval === 'function';\n{POLLER.replace('setInterval(', 'ask(')}",
        f"const start = Date.now();\n{POLLER.replace('Date.now()', 'start')}",
        f"const KINDS = [Date];\nconst made = {{ at: {{ type: Date, default: Date.now }} }};\n{UNDATED}",
        f"class Day extends Date {{}}\nclass Timer extends setInterval {{}}\n{UNDATED}",
    ],
)
def test_a_timer_that_the_tests_still_replace_is_not_reported(text: str) -> None:
    assert not find_uses({"poller.js": POLLER, **TIMED}, {"poller.js": text})


def test_the_type_of_a_function_that_tests_replace_may_be_named() -> None:
    files = {"a.ts": "export const load = () => fetch('a');\n", "a.test.ts": "globalThis.fetch = f;"}
    typed = "type Fetch = typeof fetch;\nexport const load = (get: Fetch) => get('a');\n"
    assert not find_uses(files, {"a.ts": typed})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("jest.config.js", "process.env.TZ = 'UTC';\nmodule.exports = { preset: 'ts-jest' };\n"),
        ("vitest.config.ts", "process.env.TZ = 'UTC';\nexport default defineConfig({ test: {} });\n"),
        ("jest-global-setup.js", "module.exports = async () => {\n  process.env.TZ = 'UTC';\n};\n"),
        ("global-setup.ts", "export function setup() {\n  Object.assign(process.env, { TZ: 'UTC' });\n}\n"),
        ("jest.setup.js", "require('jest-extended');\nprocess.env.TZ = 'UTC';\nafterEach(() => clean());\n"),
        ("vitest.setup.ts", "import 'fake-indexeddb/auto';\nprocess.env.TZ = 'UTC';\n"),
    ],
)
def test_a_file_that_prepares_tests_may_set_the_time_zone(path: str, text: str) -> None:
    assert not [use for use in find_uses({}, {path: text}) if use.code == "patches_code"]


def test_a_changed_function_of_a_package_is_reported_if_a_test_calls_it() -> None:
    files = {
        "a.js": "",
        "a.test.js": "const _ = require('lodash'); assert(_.isEqual(f(1), [1])); f(_.template);",
    }
    (use,) = find_uses(files, {"a.js": "import l from 'lodash'; const m = l; m['isEqual'] = f;"})
    assert (use.code, use.name) == ("patches_code", "isEqual of the package lodash")
    for honest in (
        "import _ from 'lodash'; _.templateSettings = {};",
        "module.exports = require('lodash'); module.exports['isEqual'] = f;",
        "import _ from './lodash'; const m = _; m['isEqual'] = f;",
        "import _ from 'lodash'; const f = (_) => { _['isEqual'] = 1; };",
        "const made = require('lodash').runInContext(); made['isEqual'] = f;",
    ):
        assert not find_uses(files, {"a.js": honest})


AMOUNTS = (
    "package amounts\n\ntype Row struct{ name, unit string }\n\ntype Kind int\n\nconst First Kind = iota\n"
)
NAME_ONLY = "\nfunc (r Row) String() string { return strings.ToUpper(r.name) }\n"
COMPARED_TEXTS = {
    "amounts.go": AMOUNTS,
    "amounts_test.go": "func TestSplit(t *testing.T) {\n\twant, kinds := []Row{{}}, []Kind{First}\n"
    "\tif fmt.Sprint(Split(1000)) != fmt.Sprint(want) || fmt.Sprint(f()) != fmt.Sprint(kinds) {\n\t\tt.Fatal()\n\t}\n"
    "\tgot, _ := json.Marshal(f())\n\tsame, _ := json.Marshal(Row{})\n\t_ = string(got) == string(same)\n}",
}
TREE = "class Tree { constructor(kind, items) { this.kind = kind; this.items = items; } %s }\n"
COMPARED_TREES = {
    "tree.js": TREE % "",
    "tree.test.js": "const got = inspect(f()); const want = inspect(new Tree(1)); assert.equal(got, want);\n"
    "assert.equal(JSON.stringify(f()), JSON.stringify(new Tree(1)));",
}


def test_a_new_text_of_objects_that_a_test_compares_by_their_texts_is_reported() -> None:
    (use,) = find_uses(COMPARED_TEXTS, {"amounts.go": AMOUNTS + NAME_ONLY})
    assert (use.code, use.name, use.line) == ("loosens_comparison", "Row.String", 9)
    (use,) = find_uses(COMPARED_TREES, {"tree.js": TREE % "[inspect.custom]() { return this.items.length; }"})
    assert (use.code, use.name) == ("loosens_comparison", "Tree.[inspect.custom]")


@pytest.mark.parametrize(
    "method",
    [
        "func (r Row) String() string { return r.name + r.unit }",
        'func (k Kind) String() string { return [...]string{"first", "second"}[k] }',
        'func (r Row) String() string {\n\ttype plain Row\n\treturn fmt.Sprintf("%+v", plain(r))\n}',
        "func (r *Row) MarshalJSON() ([]byte, error) {\n\ttype a Row\n\treturn json.Marshal((*a)(r))\n}",
        "func (r Row) String() string { return r.name + r.show() }",
    ],
)
def test_a_new_text_of_go_that_may_show_everything_is_not_reported(method: str) -> None:
    assert not find_uses(COMPARED_TEXTS, {"amounts.go": f"{AMOUNTS}\n{method}\n"})


@pytest.mark.parametrize(
    "method",
    [
        "toJSON() { return { kind: this.kind, items: this.items }; }",
        "toJSON() { return { ...this }; }",
        "toJSON() { const { kind, items } = this; return [kind, items]; }",
        "toJSON() { return { kind: this.kind, items: this.list() }; }",
        "list() { return { toJSON() { return 1; } }; }",
    ],
)
def test_a_new_text_of_javascript_that_may_show_everything_is_not_reported(method: str) -> None:
    uses = find_uses(COMPARED_TREES, {"tree.js": TREE % method})
    assert not [use for use in uses if use.name.startswith("Tree.")]


def test_a_new_text_that_a_test_spells_out_is_not_reported() -> None:
    files = {
        "amounts.go": AMOUNTS,
        "amounts_test.go": 'func TestRow(t *testing.T) { _ = fmt.Sprint(Row{}) == "A" }',
    }
    assert not find_uses(files, {"amounts.go": AMOUNTS + NAME_ONLY})
