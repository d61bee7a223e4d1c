"""Orders that leave the shop."""


def ship(inventory, order):
    """Take an order's things out of stock.

    Args:
        inventory: An Inventory.
        order: The wanted quantity of each thing, by name.

    Returns:
        The names that were shipped, and those that were short, each sorted.
    """
    shipped, short = [], []
    for name, quantity in order.items():
        try:
            inventory.remove(name, quantity)
        except ValueError:
            short.append(name)
        else:
            shipped.append(name)
    return sorted(shipped), sorted(short)
