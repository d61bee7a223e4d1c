from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.settings.schema import ModelSettings, Settings
from suture.errors import UsageError
from suture.models.pricing import Price, load_prices, parse_prices, published_price


def settings(**knobs: object) -> Settings:
    return Settings(model=ModelSettings.model_validate({"name": "openai:gpt-4o", **knobs}))


def test_a_price_is_what_its_tokens_cost() -> None:
    price = load_prices(settings()).find("openai:gpt-4o")
    assert price == Price(input=2.5, output=10)
    assert price.cost(1_000_000, 0) == 2.5
    assert price.cost(1000, 100) == pytest.approx(0.0035)


def test_every_price_that_the_library_lacks_has_a_date_and_is_one_that_it_lacks() -> None:
    text = (Path(__file__).parents[2] / "src" / "suture" / "models" / "prices.toml").read_text()
    prices = parse_prices(text, "prices.toml")
    for name, price in prices.items():
        assert price.checked is not None
        assert 0 < price.input <= price.output
        assert published_price(name, 0) is None


def test_longer_prompts_use_the_providers_higher_tier() -> None:
    prices = load_prices(settings())
    for tokens, dollars in ((200_000, (3, 15)), (200_001, (6, 22.5))):
        assert prices.find("anthropic:claude-sonnet-4-5", tokens) == Price(
            input=dollars[0], output=dollars[1]
        )


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("openai:gpt-4o-2024-11-20", "openai:gpt-4o"),
        ("anthropic:claude-3-5-haiku-latest", "anthropic:claude-3-5-haiku"),
        ("anthropic:claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_pinned_version_costs_what_its_model_costs(name: str, like: str) -> None:
    prices = load_prices(settings())
    assert prices.find(name) == prices.find(like) is not None


def test_a_version_with_a_price_of_its_own_has_that() -> None:
    price = load_prices(settings()).find("openai:gpt-4o-2024-05-13")
    assert price is not None
    assert price.input == 5


@pytest.mark.parametrize(
    "name",
    [
        "openai:ft:gpt-4o:acme::1",
        "openai:unheard-of",
        "nobody:gpt-4o",
        "my-openai:gpt-4o",
        "perplexity:sonar",
    ],
)
def test_an_unknown_model_has_no_price(name: str) -> None:
    assert load_prices(settings()).find(name) is None


def test_a_price_for_short_prompts_does_not_apply_to_long_ones() -> None:
    prices = load_prices(settings())
    assert prices.find("qwen:qwen3-coder-plus", 32_000) is not None
    assert prices.find("qwen:qwen3-coder-plus", 32_001) is None


@pytest.mark.parametrize("name", ["local:any", "ollama:any", "huggingface:any/thing", "scripted:x.yaml"])
def test_machines_of_ones_own_cost_nothing(name: str) -> None:
    price = load_prices(settings()).find(name)
    assert price is not None
    assert price.cost(10**6, 10**6) == 0
    assert price.affordable_tokens(0.0, 10**6) is None


def test_at_another_address_the_providers_price_need_not_hold() -> None:
    prices = load_prices(settings(base_url="http://127.0.0.1:9/v1"))
    assert prices.find("openai:gpt-4o") is None
    assert prices.find("anthropic:claude-3-haiku") is not None


def test_prices_of_ones_own_go_before_and_hold_anywhere(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text('["openai:gpt-4o"]\ninput = 1\noutput = 2\nchecked = 2026-11-01\n')
    for knobs in ({}, {"base_url": "http://127.0.0.1:9/v1"}):
        price = load_prices(settings(prices=own, **knobs)).find("openai:gpt-4o")
        assert price is not None
        assert (price.input, price.output) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        '["m:x"]\ninput = 1\noutput = 2\n',
        '["m:x"]\ninput = "1"\noutput = 2\nchecked = 2026-11-01\n',
        '["m:x"]\ninput = -1\noutput = 2\nchecked = 2026-11-01\n',
        '["m:x"]\ninput = 1\noutput = 2\nchecked = "today"\n',
        '["m:x"]\ninput = 1\noutput = 2\nchecked = 2026-11-01\nper = "month"\n',
        '"m:x" = 3\n',
        "not TOML",
    ],
)
def test_a_file_that_is_no_table_of_prices_is_refused(tmp_path: Path, text: str) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(text)
    with pytest.raises(UsageError, match=r"prices\.toml"):
        load_prices(settings(prices=own))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_prices(settings(prices=tmp_path / "nothing.toml"))


def test_the_longest_reply_that_some_money_pays_for() -> None:
    price = Price(input=10, output=100)
    tokens = price.affordable_tokens(0.01, 200)
    assert tokens == 80
    assert price.cost(200, tokens) <= 0.01 < price.cost(200, tokens + 1)
    assert price.affordable_tokens(0.001, 200) == 0
