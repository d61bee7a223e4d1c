from tags import tagged


def test_first():
    assert tagged("pear") == ("pear", ["p"])


def test_second():
    assert tagged("fig") == ("fig", ["f"])


def test_given():
    assert tagged("plum", ["x"]) == ("plum", ["p", "x"])
