"""Random models of ``make fuzz``: inside the region is where the model's log density is finite."""

import pytest

from fuzz.check import check_region, judge
from fuzz.models import write_model


@pytest.mark.parametrize("seed", range(24))
def test_inside_is_where_the_log_density_is_finite(seed):
    """And there the smooth log density is the same."""
    verdict = judge(write_model(seed), check_region, seed)
    assert verdict.outcome in ("agrees", "refused", "empty"), verdict.reason
