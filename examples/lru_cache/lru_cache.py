"""A cache that keeps the most recently used values."""

from collections import OrderedDict


class LRUCache:
    """Holds at most `capacity` values; a new one pushes out the one that was used longest ago.

    Reading a value and writing it both count as use.
    """

    def __init__(self, capacity):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        self.capacity = capacity
        self._values = OrderedDict()

    def get(self, key, default=None):
        """The value of `key`, or `default` where it is not held."""
        if key not in self._values:
            return default
        return self._values[key]

    def put(self, key, value):
        """Hold `value` under `key`."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self.capacity:
            self._values.popitem(last=False)

    def __len__(self):
        return len(self._values)
