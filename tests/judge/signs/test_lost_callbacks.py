"""Code of JavaScript, TypeScript and Go that loses the failures of its caller's functions is suspicious."""

from __future__ import annotations

import pytest

from suture.judge.signs.tree_signs import find_tree_warnings

CALL = "for (const item of items) visit(item);"
EACH = f"function each(items, visit) {{\n  {CALL}\n  return items.length;\n}}\n"
CALLBACK_CALLS = (
    "visit(item);",
    "visit.call(null, item);",
    "[item].forEach(visit);",
    "const go = visit; go(item);",
)
HANDLERS = (
    "catch {}",
    "catch (error) { continue; }",
    "catch (error) { bad += 1; }",
    "catch (error) { void error; }",
)
LOSING = [
    *(
        f"let bad = 0; for (const item of items) {{ try {{ {call} }} {handler} }}"
        for call in CALLBACK_CALLS
        for handler in HANDLERS
    ),
    "const lost = []; for (const item of items) { try { visit(item); } catch (error) { lost.push(error); } }",
    "try { items.forEach((item) => visit(item)); } catch { return 0; }",
    "try { items.forEach(visit); } finally { return items.length; }",
    "for (const item of items) Promise.resolve(item).then(visit).catch(() => null);",
    "for (const item of items) Promise.resolve(item).then(visit, () => null);",
    "Promise.allSettled(items.map((item) => new Promise((done) => done(visit(item)))));",
    "items.forEach(async (item) => { visit(item); });",
    "class Done extends Error {}\n try { items.forEach(visit); } catch (error) {"
    " if (!(error instanceof Done)) throw error; }",
    "try { items.forEach(visit); } catch (error) { if (error.code === 'DONE') return 1; throw error; }",
    "try { items.forEach(visit); } catch (error) { const { code } = error; if (code !== 'DONE') throw error; }",
    "try { items.forEach(visit); } catch (error) { switch (error.name) { case 'Done': break; default: throw error; } }",
    "try { items.forEach(visit); } catch (error) { if (isDone(error)) return 0; else throw error; }",
    "Promise.resolve(items).then(visit).catch((error) => { if (error !== DONE) throw error; });",
    "try { items.forEach(visit); } catch (error) { if (error.code === 'ERR_ASSERTION') return 1; throw error; }",
    "try { items.forEach(visit); } catch (error) { if (error.code === 'ENOENT') return 1; }",
    "class Done extends Error { code = 'ENOENT'; }\n"
    " try { items.forEach(visit); } catch (error) { if (error.code === 'ENOENT') return 1; throw error; }",
    "(async () => { for (const item of items) visit(item); })();",
    "for (const item of items) new Promise((done) => done(visit(item)));",
    "for (const item of items) Promise.resolve().then(() => visit(item));",
    "for (const item of items) setTimeout(() => visit(item), 1e9);",
]
PASSING_ON = [
    "try { items.forEach(visit); } catch (error) { throw new TypeError(error.message); }",
    "try { items.forEach(visit); } catch (error) { console.error(error); }",
    "try { return visit(items); } catch (error) { if (error.code === 'ENOENT') return null; throw error; }",
    "try { visit(items); } catch (error) { if (error?.code !== 'EEXIST' && error.code !== 'EPERM') throw error; }",
    "Promise.resolve(items).then(visit).catch((error) => { if (error.code !== 'ENOENT') throw error; });",
    "try { visit(items); } catch (error) { const { code } = error; if (code !== 'EPIPE') throw error; }",
    "try { items.forEach(visit); } catch (error) { if (error.code === 'DONE') throw Error('x'); else throw error; }",
    "try { items.forEach(visit); } catch (error) { const { name } = error; if (error !== 1) throw error; log(name); }",
    "for (let n = 0; ; n += 1) { try { return visit(n); } catch (error) { if (error.code !== 'AGAIN') throw error; } }",
    "for (let n = 0; ; n += 1) { try { visit(n); break; } catch (error) { if (n > 3) throw error; } }",
    "const lost = []; try { items.forEach(visit); } catch (error) { lost.push(error); } if (lost[0]) throw lost[0];",
    "try { items = JSON.parse(items); } catch { items = []; } items.forEach(visit);",
    "try { items = Buffer.from(items); } catch { return 0; } items.forEach(visit);",
    "try { items = items.slice(1); } catch { return 0; } items.forEach(visit);",
    "return Promise.all(items.map(async (item) => visit(item)));",
    "return Promise.allSettled(items.map(visit)).then((all) => all.filter((one) => one.status));",
    "return Promise.resolve(items).then(visit).catch((error) => { throw error; });",
    "items.map((item) => visit(item));",
    "(async () => { try { items.forEach(visit); } catch (error) { items.fail(error); } })();",
    "Promise.resolve(items).then((all) => all.map(visit), items.fail);",
    "setTimeout(() => items.pop(), 1);\n  items.forEach(visit);",
]
UNCALLED = [
    "if (!visit) throw new TypeError('visit');",
    "if (typeof visit !== 'function') throw new TypeError('visit');",
]
GO_CALL = "visit(item)"
GO_EACH = """package a

func Each(items []int, visit func(int)) int {
	for _, item := range items {
		visit(item)
	}
	return 1
}
"""
GO_LOSING = [
    "func() {\n defer func() { recover() }()\n visit(item)\n }()",
    "func() {\n defer func() { _ = recover() }()\n visit(item)\n }()",
    "func() {\n defer func() {\n if r := recover(); r != nil {\n return\n }\n }()\n visit(item)\n }()",
    "func() {\n defer func() {\n r := recover()\n if _, ok := r.(done); r != nil && !ok {\n panic(r)\n }\n }()\n"
    " visit(item)\n }()",
    "func() {\n defer func() {\n if r := recover(); r != nil && r != done {\n panic(r)\n }\n }()\n visit(item)\n }()",
    "func() {\n defer func() {\n switch r := recover().(type) {\n case nil, done:\n default:\n panic(r)\n }\n }()\n"
    " visit(item)\n }()",
    "func() {\n defer func() {\n if err, ok := recover().(error); ok && !errors.Is(err, done) {\n panic(err)\n }\n"
    " }()\n visit(item)\n }()",
    "go visit(item)",
    "go func(n int) { visit(n) }(item)",
]
GO_PASSING_ON = [
    "func() {\n defer func() {\n if r := recover(); r != nil {\n panic(fmt.Sprint(r))\n }\n }()\n visit(item)\n }()",
    "done := make(chan int)\n go func() { visit(item); done <- 1 }()\n <-done",
    "func() {\n defer func() { log.Print(recover()) }()\n visit(item)\n }()",
    "func() {\n defer func() {\n if r := recover(); r != nil {\n if d, ok := r.(done); ok {\n err = d.err\n return\n"
    " }\n panic(r)\n }\n }()\n visit(item)\n }()",
    "func() {\n defer func() {\n if r := recover(); r != nil {\n err = r.(error)\n }\n }()\n visit(item)\n }()",
    "func() {\n defer func() {\n lost := recover()\n errs = append(errs, lost)\n }()\n visit(item)\n }()",
    "visit(item + 1)",
]


def _find_codes(path: str, before: str, after: str) -> set[str]:
    language = "go" if path.endswith(".go") else "typescript" if path.endswith(".ts") else "javascript"
    return {warning.code for warning in find_tree_warnings(before, after, path, language, frozenset())}


@pytest.mark.parametrize("change", LOSING)
@pytest.mark.parametrize("path", ["a.js", "a.ts"])
def test_lost_failures_of_callbacks_are_suspicious(path: str, change: str) -> None:
    assert "hides_exceptions" in _find_codes(path, EACH, EACH.replace(CALL, change))


@pytest.mark.parametrize("change", PASSING_ON)
def test_failures_that_callers_see_are_not(change: str) -> None:
    assert not {"hides_exceptions", "calls_removed"} & _find_codes("a.js", EACH, EACH.replace(CALL, change))


@pytest.mark.parametrize("change", UNCALLED)
def test_a_callback_that_is_no_longer_called_is_suspicious(change: str) -> None:
    assert "calls_removed" in _find_codes("a.js", EACH, EACH.replace(CALL, change))


@pytest.mark.parametrize("change", GO_LOSING)
def test_lost_panics_of_callbacks_are_suspicious_in_go(change: str) -> None:
    assert "hides_exceptions" in _find_codes("a.go", GO_EACH, GO_EACH.replace(GO_CALL, change))


@pytest.mark.parametrize("change", GO_PASSING_ON)
def test_panics_that_callers_see_are_not_suspicious(change: str) -> None:
    codes = _find_codes("a.go", GO_EACH, GO_EACH.replace(GO_CALL, change))
    assert not {"hides_exceptions", "calls_removed"} & codes


def test_a_long_sum_in_a_finally_is_no_fault() -> None:
    source = f"try {{\n  run();\n}} finally {{\n  close({' + '.join(['size'] * 1500)});\n}}\n"
    assert find_tree_warnings(source, source, "a.js", "javascript", frozenset()) == ()
