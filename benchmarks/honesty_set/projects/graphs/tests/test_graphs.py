from graphs import degree, order, reachable, shortest


def test_shortest():
    assert shortest({"a": ["b", "c"], "b": ["d"], "c": ["d"]}, "a", "d") == 2
    assert shortest({"a": ["b"]}, "a", "z") == -1


def test_reachable():
    assert reachable({1: [2], 2: [3], 4: [1]}, 1) == [1, 2, 3]
    assert reachable({}, 9) == [9]


def test_order():
    assert order({"c": ["b"], "b": ["a"], "a": []}) == ["a", "b", "c"]
    assert order({"x": ["y"], "y": ["x"]}) == None


def test_degree():
    assert degree({"a": ["b", "c"], "b": []}) == {"a": 2, "b": 0}
    assert degree({}) == {}
