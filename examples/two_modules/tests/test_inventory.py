import pytest

from shop.inventory import Inventory


def test_taking_lowers_the_count():
    inventory = Inventory({"mug": 3})
    inventory.take("mug", 2)
    assert inventory.count("mug") == 1


def test_taking_too_many_is_refused_and_changes_nothing():
    inventory = Inventory({"mug": 3})
    with pytest.raises(ValueError):
        inventory.take("mug", 4)
    assert inventory.count("mug") == 3
