def split_bill(cents, people):
    share, rest = divmod(cents, people)
    return [share + 1] * rest + [share] * (people - rest)


def running_balance(amounts):
    balance, balances = 0, []
    for amount in amounts:
        balance += amount
        balances.append(balance)
    return balances


def median(numbers):
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def compound(principal, rate, years):
    return principal * (1 + rate) ** years
