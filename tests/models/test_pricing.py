"""Prices of models: published, supplied with Suture, and set by the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from suture.core.settings.schema import ModelSettings, Settings
from suture.errors import UsageError
from suture.models.pricing import Price, load_prices, parse_prices, published_price


def make_settings(**knobs: object) -> Settings:
    """Return settings of a model with a known price."""
    return Settings(model=ModelSettings.model_validate({"name": "openai:gpt-4o", **knobs}))


def test_the_cost_follows_from_price_and_tokens() -> None:
    price = load_prices(make_settings()).find("openai:gpt-4o")
    assert price == Price(input=2.5, output=10, cached_input=1.25)
    assert price.cost(1_000_000, 0) == 2.5
    assert price.cost(1000, 100) == pytest.approx(0.0035)


def test_own_prices_have_a_date_and_are_missing_from_the_library() -> None:
    text = (Path(__file__).parents[2] / "src" / "suture" / "models" / "prices.toml").read_text()
    prices = parse_prices(text, "prices.toml")
    for name, price in prices.items():
        assert price.checked is not None
        assert 0 < price.input <= price.output
        assert published_price(name, 0) is None


def test_longer_prompts_use_the_providers_higher_tier() -> None:
    prices = load_prices(make_settings())
    for tokens, dollars in ((200_000, (3, 15, 0.3, 3.75)), (200_001, (6, 22.5, 0.6, 7.5))):
        assert prices.find("anthropic:claude-sonnet-4-5", tokens) == Price(
            input=dollars[0], output=dollars[1], cached_input=dollars[2], cache_write=dollars[3]
        )


def test_tokens_of_the_cache_have_their_own_price() -> None:
    price = load_prices(make_settings()).find("anthropic:claude-sonnet-4-5")
    assert price is not None
    assert price.cost(1_000_000, 0, cached_tokens=1_000_000) == pytest.approx(0.3)
    assert price.cost(1_000_000, 0, cached_tokens=500_000, cache_write_tokens=500_000) == pytest.approx(2.025)
    assert price.max_cost(1_000_000, 0) == pytest.approx(3.75)


def test_tokens_of_the_cache_are_charged_in_full_where_their_price_is_unknown() -> None:
    price = Price(input=2, output=8)
    assert price.cost(1_000_000, 0, cached_tokens=400_000, cache_write_tokens=100_000) == 2


def test_the_users_prices_may_name_those_of_the_cache(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('["openai:mine"]\ninput = 2\noutput = 8\ncached_input = 0.5\nchecked = 2026-11-01\n')
    price = load_prices(make_settings(prices=file)).find("openai:mine")
    assert price is not None
    assert price.cost(1_000_000, 0, cached_tokens=1_000_000) == 0.5


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai:gpt-4o-2024-11-20", "openai:gpt-4o"),
        ("anthropic:claude-3-5-haiku-latest", "anthropic:claude-3-5-haiku"),
        ("anthropic:claude-sonnet-4-5-20250929", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_pinned_version_costs_what_its_model_costs(name: str, model: str) -> None:
    prices = load_prices(make_settings())
    assert prices.find(name) == prices.find(model) is not None


def test_a_version_may_have_its_own_price() -> None:
    price = load_prices(make_settings()).find("openai:gpt-4o-2024-05-13")
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
    assert load_prices(make_settings()).find(name) is None


def test_a_price_for_short_prompts_does_not_apply_to_long_ones() -> None:
    prices = load_prices(make_settings())
    assert prices.find("qwen:qwen3-coder-plus", 32_000) is not None
    assert prices.find("qwen:qwen3-coder-plus", 32_001) is None


@pytest.mark.parametrize("name", ["local:any", "ollama:any", "huggingface:any/thing", "scripted:x.yaml"])
def test_local_models_cost_nothing(name: str) -> None:
    price = load_prices(make_settings()).find(name)
    assert price is not None
    assert price.cost(10**6, 10**6) == 0
    assert price.affordable_tokens(0.0, 10**6) is None


def test_the_price_of_a_provider_does_not_apply_at_another_address() -> None:
    prices = load_prices(make_settings(base_url="http://127.0.0.1:9/v1"))
    assert prices.find("openai:gpt-4o") is None
    assert prices.find("anthropic:claude-3-haiku") is not None


def test_prices_of_the_user_take_precedence_at_any_address(tmp_path: Path) -> None:
    price_file = tmp_path / "prices.toml"
    price_file.write_text('["openai:gpt-4o"]\ninput = 1\noutput = 2\nchecked = 2026-11-01\n')
    for knobs in ({}, {"base_url": "http://127.0.0.1:9/v1"}):
        price = load_prices(make_settings(prices=price_file, **knobs)).find("openai:gpt-4o")
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
def test_an_invalid_price_file_is_refused(tmp_path: Path, text: str) -> None:
    price_file = tmp_path / "prices.toml"
    price_file.write_text(text)
    with pytest.raises(UsageError, match=r"prices\.toml"):
        load_prices(make_settings(prices=price_file))


def test_a_missing_price_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_prices(make_settings(prices=tmp_path / "nothing.toml"))


def test_affordable_tokens_follow_from_the_remaining_money() -> None:
    price = Price(input=10, output=100)
    tokens = price.affordable_tokens(0.01, 200)
    assert tokens == 80
    assert price.cost(200, tokens) <= 0.01 < price.cost(200, tokens + 1)
    assert price.affordable_tokens(0.001, 200) == 0
