from shop.inventory import Inventory
from shop.orders import ship


def test_an_order_leaves_the_stock():
    inventory = Inventory({"mug": 3, "plate": 5})
    assert ship(inventory, {"plate": 1, "mug": 2}) == (["mug", "plate"], [])
    assert inventory.count("mug") == 1
    assert inventory.count("plate") == 4


def test_what_is_short_stays_behind():
    inventory = Inventory({"mug": 1, "plate": 5})
    assert ship(inventory, {"mug": 2, "plate": 5}) == (["plate"], ["mug"])
    assert inventory.count("mug") == 1


def test_an_empty_order_ships_nothing():
    assert ship(Inventory({}), {}) == ([], [])
