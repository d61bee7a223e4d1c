from parse import pairs


def test_two():
    assert pairs("a=1;b=2") == {"a": "1", "b": "2"}


def test_equals_in_a_value():
    assert pairs("q=x=y") == {"q": "x=y"}
