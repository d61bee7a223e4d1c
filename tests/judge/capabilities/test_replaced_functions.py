"""New uses that matter only by what the tests do: they replace a function, call one of a package, or compare texts."""

from __future__ import annotations

import pytest

from suture.core.records import CapabilityUse
from suture.judge.capabilities import find_change_capabilities

POLLER = (
    "class Poller { start(ask) { setInterval(ask, 9); return Date.now(); } }\nmodule.exports = { Poller };\n"
)
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
    ],
)
def test_a_timer_that_the_tests_still_replace_is_not_reported(text: str) -> None:
    assert not find_uses({"poller.js": POLLER, **TIMED}, {"poller.js": text})


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


AMOUNTS = "package amounts\n\ntype Amount int64\n\ntype Row struct{ name, unit string }\n"
PRICE_TAG = '\nfunc (a Amount) String() string { return strconv.Itoa(int(a)/100) + ".-" }\n'
COMPARED_TEXTS = {
    "amounts.go": AMOUNTS,
    "amounts_test.go": "func TestSplit(t *testing.T) {\n\twant := []Amount{334}\n\t_ = Row{}\n"
    "\tif fmt.Sprint(Split(1000)) != fmt.Sprint(want) {\n\t\tt.Fatal()\n\t}\n}",
}


def test_a_new_text_of_objects_that_a_test_compares_by_their_texts_is_reported() -> None:
    (use,) = find_uses(COMPARED_TEXTS, {"amounts.go": AMOUNTS + PRICE_TAG})
    assert (use.code, use.name, use.line) == ("loosens_comparison", "Amount.String", 7)

    tree = "class Tree { constructor(items) { this.items = items; } %s }\n"
    files = {
        "tree.js": tree % "",
        "tree.test.js": "const got = inspect(f()); const want = inspect(new Tree(1)); assert.equal(got, want);",
    }
    (use,) = find_uses(files, {"tree.js": tree % "[inspect.custom]() { return this.items.length; }"})
    assert (use.code, use.name) == ("loosens_comparison", "Tree.[inspect.custom]")


def test_a_new_text_that_shows_everything_or_that_a_test_spells_out_is_not_reported() -> None:
    shows_all = "\nfunc (r Row) String() string { return r.name + r.unit }\n"
    assert not find_uses(COMPARED_TEXTS, {"amounts.go": AMOUNTS + shows_all})
    spelled = COMPARED_TEXTS["amounts_test.go"].replace("fmt.Sprint(want)", '"[3.-]"')
    files = {**COMPARED_TEXTS, "amounts_test.go": spelled}
    assert not find_uses(files, {"amounts.go": AMOUNTS + PRICE_TAG})
