import pytest

from ledger.accounts import Refused, deposit, withdraw
from ledger.statement import closing


def test_withdraw_to_zero():
    assert withdraw(50, 50) == 0


def test_withdraw_to_the_limit():
    assert withdraw(10, 30, limit=20) == -20


def test_beyond_the_limit():
    with pytest.raises(Refused):
        withdraw(10, 31, limit=20)


def test_deposit():
    assert deposit(5, 5) == 10


def test_closing():
    assert closing(100, [-40, 15, -75]) == 0
