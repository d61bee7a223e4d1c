"""What a change does to the tests of a JavaScript or Go file, read from its two versions."""

from __future__ import annotations

import pytest

from suture.judge.test_changes import compare_tests

CART_JS = """
const { total } = require('../lib/cart');

describe('cart', () => {
  test('adds', () => {
    const sum = total([1, 2]);
    expect(sum).toBe(3);
    expect(sum).toBeGreaterThan(0);
  });
  it('is close', async () => {
    expect(total([0.1, 0.2])).toBeCloseTo(0.3, 5);
    await expect(total([])).rejects.toThrow(TypeError);
  });
  test.each([[1, 2], [2, 4]])('doubles %i', (given, wanted) => {
    assert.strictEqual(total(given), wanted);
  });
});
"""
CART_GO = """package cart

import "testing"

func TestTotal(t *testing.T) {
	cases := []struct{ given, wanted int }{
		{1, 2},
		{2, 4},
	}
	for _, c := range cases {
		if got := Total(c.given); got != c.wanted {
			t.Errorf("Total(%d) = %d", c.given, got)
		}
	}
	require.Equal(t, 3, Sum(1, 2))
	if math.Abs(Share()-0.5) > 0.001 {
		t.Fatal("share")
	}
}
"""


def find_codes(path: str, before: str, after: str) -> list[tuple[str, str]]:
    return [
        (change.code, change.test) for change in compare_tests({path: before}, {path: after})[path].changes
    ]


@pytest.mark.parametrize(
    ("old", "new", "code", "test"),
    [
        ("    expect(sum).toBe(3);\n", "", "assertion_removed", "cart > adds"),
        ("expect(sum).toBe(3)", "expect(sum).toBeTruthy()", "assertion_loosened", "cart > adds"),
        ("expect(sum).toBe(3)", "expect(sum).toBeLessThan(9)", "assertion_loosened", "cart > adds"),
        ("expect(sum).toBe(3)", "expect(sum).not.toBe(4)", "assertion_loosened", "cart > adds"),
        ("expect(sum).toBe(3)", "expect(sum).toBe(sum)", "assertion_loosened", "cart > adds"),
        ("expect(sum).toBe(3)", "expect(sum).toBe(4)", "expectation_changed", "cart > adds"),
        ("expect(sum).toBe(3);", "if (sum) { expect(sum).toBe(3); }", "assertion_guarded", "cart > adds"),
        ("expect(sum).toBe(3);", "try { expect(sum).toBe(3); } catch {}", "assertion_guarded", "cart > adds"),
        ("0.3, 5", "0.3, 0", "tolerance_widened", "cart > is close"),
        ("toThrow(TypeError)", "toThrow()", "exception_broadened", "cart > is close"),
        ("test('adds'", "test.skip('adds'", "test_skipped", "cart > adds"),
        ("test('adds', ", "test('adds', { skip: true }, ", "test_skipped", "cart > adds"),
        ("describe('cart'", "describe.skip('cart'", "test_skipped", "cart > adds"),
        ("it('is close'", "it.only('is close'", "test_skipped", ""),
        ("test('adds', () => {", "test('adds', (t) => { t.skip();", "test_skipped", "cart > adds"),
        (", [2, 4]]", "]", "cases_removed", "cart > doubles %i"),
        ("strictEqual(total(given), wanted)", "ok(total(given))", "assertion_loosened", "cart > doubles %i"),
        ("test('adds', () => {", "helper('adds', () => {", "test_removed", "cart > adds"),
        ("const { total }", "jest.mock('../lib/cart');\nconst { total }", "test_support_changed", ""),
    ],
)  # fmt: skip
def test_a_weakened_javascript_test_is_named(old: str, new: str, code: str, test: str) -> None:
    assert CART_JS.count(old) == 1
    assert (code, test) in find_codes("test/cart.test.js", CART_JS, CART_JS.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("got != c.wanted", "got < 0", "assertion_loosened"),
        ("got != c.wanted", "got != c.wanted && got < 0", "assertion_loosened"),
        ("\t\t{2, 4},\n", "", "cases_removed"),
        ("{2, 4}", "{2, 5}", "expectation_changed"),
        ("require.Equal(t, 3, Sum(1, 2))", "require.NotNil(t, Sum(1, 2))", "assertion_loosened"),
        ("require.Equal(t, 3, Sum(1, 2))", "require.Equal(t, 4, Sum(1, 2))", "expectation_changed"),
        ("> 0.001", "> 0.5", "tolerance_widened"),
        ("\tcases :=", '\tt.Skip("later")\n\tcases :=', "test_skipped"),
        ("t.Errorf(", "t.Logf(", "assertion_removed"),
        ("func TestTotal", "func checkTotal", "test_removed"),
        ("package cart", "//go:build never\n\npackage cart", "test_skipped"),
        (
            'import "testing"',
            'import "testing"\n\nfunc TestMain(m *testing.M) { os.Exit(0) }',
            "test_hook_added",
        ),
    ],
)
def test_a_weakened_go_test_is_named(old: str, new: str, code: str) -> None:
    assert CART_GO.count(old) == 1
    assert code in [code for code, _ in find_codes("cart_test.go", CART_GO, CART_GO.replace(old, new))]


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        ("test/cart.test.js", CART_JS, "test('adds'", "test('sums up'"),
        ("test/cart.test.js", CART_JS, "    const sum", "    // the sum\n    const sum"),
        ("test/cart.test.ts", CART_JS, "toBe(3);", "toBe(3);\n    expect(sum).toBe(3);"),
        ("cart_test.go", CART_GO, "\tcases :=", "\t// all cases\n\tcases :="),
        ("cart_test.go", CART_GO, "{2, 4},\n", "{2, 4},\n\t\t{3, 6},\n"),
    ],
)
def test_a_test_that_asks_for_as_much_as_before_is_not_named_in_other_languages(
    path: str, text: str, old: str, new: str
) -> None:
    assert find_codes(path, text, text.replace(old, new)) == []
