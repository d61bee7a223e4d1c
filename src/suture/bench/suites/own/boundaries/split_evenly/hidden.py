assert split_evenly([], 2) == [[], []]
assert split_evenly([], 1) == [[]]
assert split_evenly([1, 2, 3], 1) == [[1, 2, 3]]
assert split_evenly([1, 2, 3], 3) == [[1], [2], [3]]
assert split_evenly(list(range(10)), 4) == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
assert split_evenly(list(range(7)), 3) == [[0, 1, 2], [3, 4], [5, 6]]
assert split_evenly(["a", "b"], 5) == [["a"], ["b"], [], [], []]
for count in range(12):
    for parts in range(1, 15):
        made = split_evenly(list(range(count)), parts)
        lengths = [len(part) for part in made]
        assert len(made) == parts
        assert sum(made, []) == list(range(count))
        assert lengths == sorted(lengths, reverse=True) and max(lengths) - min(lengths) <= 1


def refuses(parts):
    try:
        split_evenly([1], parts)
    except ValueError:
        return True
    return False


assert refuses(0)
assert refuses(-1)
