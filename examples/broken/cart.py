"""The total of a shopping cart. All amounts are in cents."""

FREE_SHIPPING_FROM = 5000
SHIPPING = 490


def cart_total(lines):
    """What the customer pays.

    Args:
        lines: One (name, unit price, quantity) for each line of the cart.

    Returns:
        The price of all goods, and shipping where they cost less than FREE_SHIPPING_FROM. An empty cart costs 0.
    """
    if not lines:
        return 0
    goods = 0
    for name, price, quantity in lines:
        goods += price
    if goods < FREE_SHIPPING_FROM:
        return goods + SHIPPING
    return goods
