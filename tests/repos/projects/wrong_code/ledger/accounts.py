"""Accounts with an overdraft limit."""


class Refused(Exception):
    """The account does not hold that much."""


def withdraw(balance, amount, limit=0):
    """The balance after a withdrawal; an account may go down to minus its limit."""
    left = balance - amount
    if left <= -limit:
        raise Refused(f"{amount} is more than {balance} and a limit of {limit}")
    return left


def deposit(balance, amount):
    """The balance after a deposit."""
    if amount <= 0:
        raise ValueError("a deposit is more than nothing")
    return balance + amount
