from bisect import bisect_left, bisect_right

assert value_span([], 3) == (0, 0)
assert value_span([3], 3) == (0, 1)
assert value_span([3], 2) == (0, 0)
assert value_span([3], 4) == (1, 1)
assert value_span([1, 1, 1], 1) == (0, 3)
assert value_span([1, 1, 2], 2) == (2, 3)
assert value_span([-3, -2, -2, 0], -2) == (1, 3)
assert value_span(["a", "b", "b", "d"], "c") == (3, 3)
assert value_span([1.0, 2.5, 2.5], 2.5) == (1, 3)
for length in range(9):
    for step in (1, 2, 3):
        values = [n // step for n in range(length)]
        for target in range(-1, length + 1):
            assert value_span(values, target) == (bisect_left(values, target), bisect_right(values, target))
