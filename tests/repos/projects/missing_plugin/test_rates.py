from rates import in_euros, later


def test_the_service_is_asked_once(ask_stub):
    ask = ask_stub(return_value=1.25)
    assert in_euros(10, "USD", ask) == 8
    ask.assert_called_once_with("USD")


async def test_it_can_be_waited_for():
    assert await later(10, "USD", lambda currency: 1.25) == 8
