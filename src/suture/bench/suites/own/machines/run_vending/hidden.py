prices = {"tea": 120, "water": 80}
assert run_vending([], prices, {}) == []
assert run_vending(["tea"], prices, {}) == ["sold out"]
assert run_vending([120, "tea"], prices, {"tea": 1}) == ["credit 120", "sold, change 0"]
assert run_vending([119, "tea", 1, "tea"], prices, {"tea": 1}) == ["credit 119", "short 1", "credit 120", "sold, change 0"]
assert run_vending([200, "tea", "tea", 100, "water"], prices, {"tea": 1, "water": 1}) == [
    "credit 200", "sold, change 80", "sold out", "credit 100", "sold, change 20",
]
assert run_vending([200, "tea", "water"], prices, {"tea": 1, "water": 1}) == ["credit 200", "sold, change 80", "short 80"]
assert run_vending([50, "cancel", "cancel", 10], prices, {}) == ["credit 50", "returned 50", "returned 0", "credit 10"]
assert run_vending([-20, 0, 30, -5], prices, {}) == ["credit 0", "credit 0", "credit 30", "credit 30"]
assert run_vending([500, "cola", "cancel"], prices, {"cola": 3}) == ["credit 500", "unknown", "returned 500"]
assert run_vending([500, "tea", "cancel"], prices, {"tea": 0}) == ["credit 500", "sold out", "returned 500"]
assert run_vending(["tea"], prices, {"tea": 0}) == ["sold out"]
stock = {"tea": 2}
assert run_vending([120, "tea", 120, "tea", 120, "tea"], prices, stock)[-1] == "sold out"
assert stock == {"tea": 2}
