from shop.orders import order


def test_limited_by_stock():
    assert order("bolt", 9) == 7


def test_limited_by_the_rule():
    assert order("nut", 30) == 10
