from ledger.accounts import deposit, withdraw


def closing(opening, movements, limit=0):
    """The balance after all movements: positive ones are deposits, negative ones withdrawals."""
    balance = opening
    for amount in movements:
        balance = deposit(balance, amount) if amount > 0 else withdraw(balance, -amount, limit)
    return balance
