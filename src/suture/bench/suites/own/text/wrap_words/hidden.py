assert wrap_words("", 5) == []
assert wrap_words("  \n ", 5) == []
assert wrap_words("abc", 3) == ["abc"]
assert wrap_words("abcd", 3) == ["abc", "d"]
assert wrap_words("abcdef", 3) == ["abc", "def"]
assert wrap_words("abcdef g", 3) == ["abc", "def", "g"]
assert wrap_words("ab cd", 5) == ["ab cd"]
assert wrap_words("ab cd", 4) == ["ab", "cd"]
assert wrap_words("a  b\nc\td", 3) == ["a b", "c d"]
assert wrap_words("a b c", 1) == ["a", "b", "c"]
assert wrap_words("abc", 1) == ["a", "b", "c"]
assert wrap_words("x abcdefgh y z", 4) == ["x", "abcd", "efgh", "y z"]
assert wrap_words("xyz abcdefg h", 4) == ["xyz", "abcd", "efg", "h"]
assert wrap_words("one two three", 100) == ["one two three"]


def refuses(width):
    try:
        wrap_words("a", width)
    except ValueError:
        return True
    return False


assert refuses(0)
assert refuses(-2)
