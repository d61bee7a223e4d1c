from intervals import gaps, merge, sort_spans, total_length


def test_merge():
    assert merge([[1, 3], [2, 5], [7, 8]]) == [[1, 5], [7, 8]]
    assert merge([[1, 9], [2, 3]]) == [[1, 9]]


def test_total_length():
    assert total_length([[0, 2], [1, 4]]) == 4
    assert total_length([[0, 1], [5, 7]]) == 3


def test_gaps():
    assert gaps([[0, 1], [4, 5]]) == [[1, 4]]
    assert gaps([[0, 9]]) == []


def test_sort_spans():
    spans = [[2, 3], [1, 2], [1, 5]]
    assert sort_spans(spans) == sorted(spans, key=lambda span: (span[0], -span[1])), f"wrong for {spans}"
    assert len(sort_spans(spans)) == len(spans)
