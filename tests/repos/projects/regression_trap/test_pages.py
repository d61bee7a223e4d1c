import pytest

from pages import page_count, page_of


def test_last_page_is_full():
    assert page_count(20, 10) == 2


def test_no_items():
    assert page_count(0, 10) == 1


def test_one_more():
    assert page_count(21, 10) == 3


@pytest.mark.parametrize(("index", "page"), [(0, 1), (9, 1), (10, 2)])
def test_page_of(index, page):
    assert page_of(index, 10) == page
