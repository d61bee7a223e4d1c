import pytest

from lru_cache import LRUCache


def test_a_value_comes_back():
    cache = LRUCache(2)
    cache.put("a", 1)
    assert cache.get("a") == 1


def test_what_is_missing_gives_the_default():
    assert LRUCache(1).get("a", default=7) == 7


def test_the_oldest_is_pushed_out():
    cache = LRUCache(2)
    for key in "abc":
        cache.put(key, key.upper())
    assert cache.get("a") is None
    assert len(cache) == 2


def test_reading_counts_as_use():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert cache.get("a") == 1
    assert cache.get("b") is None


def test_writing_again_counts_as_use():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 10)
    cache.put("c", 3)
    assert cache.get("a") == 10
    assert cache.get("b") is None


def test_a_capacity_of_zero_is_refused():
    with pytest.raises(ValueError):
        LRUCache(0)
