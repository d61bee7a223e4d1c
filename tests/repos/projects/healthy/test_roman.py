import pytest

from roman import roman


@pytest.mark.parametrize(("number", "text"), [(1, "I"), (4, "IV"), (14, "XIV"), (39, "XXXIX")])
def test_roman(number, text):
    assert roman(number) == text
