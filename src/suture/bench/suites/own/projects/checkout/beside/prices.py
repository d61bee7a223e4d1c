"""Prices in cents."""

TIERS = [(10, 10), (100, 20)]
"""From so many pieces on, so many percent off."""


def percent_off(total, percent):
    """A sum less some percent, rounded up to whole cents."""
    return -(-total * (100 - percent) // 100)


def line_total(price, quantity):
    """What so many pieces cost, with the best discount that the quantity earns."""
    for least, percent in sorted(TIERS, reverse=True):
        if quantity >= least:
            return percent_off(price * quantity, percent)
    return price * quantity
