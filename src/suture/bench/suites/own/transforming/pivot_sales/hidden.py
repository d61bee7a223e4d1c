assert pivot_sales([("a", "x", 1)]) == {"a": {"x": 1}}
assert pivot_sales([("a", "x", 1), ("a", "x", -1)]) == {"a": {"x": 0}}
rows = [("b", "y", 1), ("a", "x", 2), ("b", "x", 4), ("a", "y", 8), ("c", "z", 16), ("b", "y", 32)]
made = pivot_sales(rows)
assert made == {"b": {"y": 33, "x": 4, "z": 0}, "a": {"y": 8, "x": 2, "z": 0}, "c": {"y": 0, "x": 0, "z": 16}}
assert list(made) == ["b", "a", "c"]
assert all(list(line) == ["y", "x", "z"] for line in made.values())
assert rows[0] == ("b", "y", 1)
assert pivot_sales([("a", "x", 1), ("b", "y", 2)]) == {"a": {"x": 1, "y": 0}, "b": {"x": 0, "y": 2}}
