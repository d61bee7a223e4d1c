from textkit import caesar, count_vowels, initials, slugify, truncate


def test_slugify():
    assert slugify("Hello, World!") == "hello-world"
    assert slugify("  A  b ") == "a-b"


def test_initials():
    assert initials("ada lovelace") == "AL"
    assert initials("grace brewster hopper") == "GBH"


def test_count_vowels():
    assert count_vowels("Education") == 5
    assert count_vowels("rhythm") == 0


def test_truncate():
    assert truncate("abcdefghij", 6) == "abc..."
    assert truncate("abc", 6) == "abc"


def test_caesar():
    assert caesar("xyz", 3) == "abc"
    assert caesar("a b", 1) == "b c"
