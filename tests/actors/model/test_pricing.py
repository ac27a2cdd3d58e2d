"""Prices follow the tier that the whole input reaches, and the hour that a cache write lives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.model.pricing import price, priced
from protocol.messages import Usage
from protocol.model import CostTier, Model, ModelCost


def test_each_kind_of_token_has_its_rate_per_million(model_of: Callable[..., Model]) -> None:
    cost = price(Usage(1_000_000, 1_000_000, 1_000_000, 1_000_000), model_of())
    assert (cost.input, cost.output, cost.cache_read, cost.cache_write) == pytest.approx((3, 15, 0.3, 3.75))
    assert cost.total == pytest.approx(22.05)


def test_an_hour_of_cache_costs_twice_the_input_rate(model_of: Callable[..., Model]) -> None:
    cost = price(Usage(cache_write=1_000_000, cache_write_1h=1_000_000), model_of())
    assert cost.cache_write == pytest.approx(6)
    cost = price(Usage(cache_write=1_000_000, cache_write_1h=400_000), model_of())
    assert cost.cache_write == pytest.approx(0.6 * 3.75 + 0.4 * 6)


def test_a_tier_holds_from_one_token_above_its_threshold_for_the_whole_request(model_of: Callable[..., Model]) -> None:
    tiers = (CostTier(200_000, 6, 30, 0.6, 7.5), CostTier(100_000, 4, 20, 0.4, 5))
    model = model_of(cost=ModelCost(3, 15, 0.3, 3.75, tiers))
    at, above = Usage(input=60_000, cache_read=40_000), Usage(input=60_001, cache_read=40_000)
    assert price(at, model).input == pytest.approx(0.18)
    assert price(above, model).input == pytest.approx(0.240004)
    assert price(Usage(input=1_000_000), model).input == pytest.approx(6)


def test_a_service_tier_multiplies_every_part(model_of: Callable[..., Model]) -> None:
    usage = priced(Usage(1_000_000, 1_000_000), model_of(), 0.5)
    assert usage.cost.total == pytest.approx(9)
    assert usage.cost.output == pytest.approx(7.5)
