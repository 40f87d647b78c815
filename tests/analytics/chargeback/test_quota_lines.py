"""What quota that was lent, borrowed or left unused was worth."""

from decimal import Decimal
from fractions import Fraction

from analytics.chargeback.distribution import Pool
from analytics.chargeback.quota_lines import QuotaLine, QuotaTime, at_average_price
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR, Currency

DAY, EUR = "2026-10-01", Currency.of("EUR")
PRICES = {
    Pool(cluster="c", gpu_model=model, day=DAY): Fraction(price, MICRO_GPU_MS_PER_GPU_HOUR)
    for model, price in (("A100", 2), ("H100", 4))
}


def worth(models: str, hours: int) -> Decimal | None:
    time = QuotaTime(lent=0, borrowed=hours * MICRO_GPU_MS_PER_GPU_HOUR, unused_commitment=0)
    line = QuotaLine(day=DAY, cluster="c", team="red", queue="q", gpu_model=models, time=time)
    lent, borrowed, unused = at_average_price(line, PRICES, EUR)
    assert lent == unused == Decimal(0)
    return borrowed


def test_a_quota_for_several_models_is_worth_the_mean_of_those_whose_price_is_known() -> None:
    assert worth("A100", 10) == Decimal("20.00")
    assert worth("A100, H100", 10) == Decimal("30.00")
    assert worth("A100, H100, L40S", 10) == Decimal("30.00")
    assert worth("L40S", 10) is None
    assert worth("L40S", 0) == 0
