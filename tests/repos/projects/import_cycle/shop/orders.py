from shop.stock import reserve

MOST = 10


def order(item, count):
    """How many of an item are reserved for an order; never more than `MOST`."""
    return reserve(item, min(count, MOST))
