from cart import cart_total


def test_an_empty_cart_costs_nothing():
    assert cart_total([]) == 0


def test_one_thing_pays_shipping():
    assert cart_total([("mug", 1200, 1)]) == 1690


def test_three_of_a_thing_cost_three_times_as_much():
    assert cart_total([("mug", 1200, 3)]) == 4090


def test_many_things_ship_for_free():
    assert cart_total([("mug", 1200, 4), ("plate", 900, 2)]) == 6600


def test_a_line_with_quantity_zero_adds_nothing():
    assert cart_total([("mug", 1200, 1), ("plate", 900, 0)]) == 1690
