"""What a request cost.

Pure arithmetic over the catalogue's prices, which are US dollars per million tokens.
"""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from protocol.messages import Cost, Usage
from protocol.model import CostTier, Model, ModelCost

_PER_TOKEN = 1e-6
# The provider's surcharge for a cache write that is kept for an hour, against plain input.
_HOUR_WRITE_FACTOR = 2


def price(usage: Usage, model: Model) -> Cost:
    """US dollars for `usage`, at the rates of the highest tier that its input exceeds. Tokens written to the cache
    for an hour cost twice the input rate."""
    rates = _rates(usage, model.cost)
    hour = usage.cache_write_1h if usage.cache_write_1h is not UNSET else 0
    five_minutes = max(0, usage.cache_write - hour)
    parts = (
        usage.input * rates.input * _PER_TOKEN,
        usage.output * rates.output * _PER_TOKEN,
        usage.cache_read * rates.cache_read * _PER_TOKEN,
        (five_minutes * rates.cache_write + hour * rates.input * _HOUR_WRITE_FACTOR) * _PER_TOKEN,
    )
    return Cost(*parts, total=sum(parts))


def priced(usage: Usage, model: Model, factor: float = 1) -> Usage:
    """`usage` with its cost filled in, times `factor` (a service tier's)."""
    cost = price(usage, model)
    if factor != 1:
        cost = Cost(*(getattr(cost, name) * factor for name in Cost.__struct_fields__))
    return replace(usage, cost=cost)


def _rates(usage: Usage, cost: ModelCost) -> ModelCost | CostTier:
    asked = usage.input + usage.cache_read + usage.cache_write
    reached = [tier for tier in cost.tiers or () if asked > tier.input_tokens_above]
    return max(reached, key=lambda tier: tier.input_tokens_above) if reached else cost
