assert page_window(10, 10, 3) == [8, 9, 10]
assert page_window(9, 10, 3) == [8, 9, 10]
assert page_window(2, 10, 3) == [1, 2, 3]
assert page_window(1, 1, 5) == [1]
assert page_window(2, 3, 5) == [1, 2, 3]
assert page_window(3, 5, 5) == [1, 2, 3, 4, 5]
assert page_window(1, 0, 5) == []
assert page_window(0, 10, 3) == [1, 2, 3]
assert page_window(-4, 10, 2) == [1, 2]
assert page_window(99, 10, 3) == [8, 9, 10]
assert page_window(99, 10, 4) == [7, 8, 9, 10]
assert page_window(10, 10, 4) == [7, 8, 9, 10]
assert page_window(8, 10, 4) == [6, 7, 8, 9]
assert page_window(6, 10, 1) == [6]
assert page_window(6, 10, 2) == [5, 6]
for pages in range(1, 9):
    for page in range(1, pages + 1):
        for width in range(1, 11):
            window = page_window(page, pages, width)
            assert len(window) == min(width, pages) and page in window
            assert window == list(range(window[0], window[0] + len(window)))
            before, after = window.index(page), len(window) - 1 - window.index(page)
            if window[0] > 1 and window[-1] < pages:
                assert before - after == (1 if width % 2 == 0 else 0)
