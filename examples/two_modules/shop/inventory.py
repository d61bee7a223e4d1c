"""What the shop has in stock."""


class Inventory:
    """Counts of things by name."""

    def __init__(self, counts):
        self._counts = dict(counts)

    def count(self, name):
        """How many there are; 0 for a thing never seen."""
        return self._counts.get(name, 0)

    def take(self, name, quantity):
        """Take things out of stock.

        Raises:
            ValueError: There are fewer than `quantity`; the stock stays as it was.
        """
        if self.count(name) < quantity:
            raise ValueError(f"only {self.count(name)} of {name} left")
        self._counts[name] -= quantity
