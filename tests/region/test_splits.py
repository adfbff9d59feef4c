"""Reading a model looks at each term of its log density once."""

import sys

import numpy as np
import pymc as pm
import pytest

import pymc_rollback as rb
from pymc_rollback.chain.chain import Chain
from pymc_rollback.region import indicators

TERMS = ["x", "s", "g", "missing_unobserved", "missing_observed", "y", "soft", "disk"]


@pytest.fixture
def splits(monkeypatch):
    """Log densities that are split, by whom, while a step is made."""
    seen = []
    split = indicators.split_indicators

    def counted(log_density, floor=-np.inf):
        caller = sys._getframe(1)
        while caller.f_code.co_name in ("split_potential", "<dictcomp>"):
            caller = caller.f_back
        seen.append((log_density, caller.f_globals["__name__"], caller.f_locals.get("self")))
        return split(log_density, floor)

    for name, module in list(sys.modules.items()):
        if name.startswith("pymc_rollback.region.") and hasattr(module, "split_indicators"):
            monkeypatch.setattr(module, "split_indicators", counted)
    monkeypatch.setattr(rb.RollbackHMC, "compiled", lambda step: None)
    monkeypatch.setattr(Chain, "compile_kernels", lambda chain: None)
    return seen


def build():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        s = pm.HalfNormal("s")
        g = pm.Gamma("g", 0.5, 1)
        data = np.ma.masked_invalid([0.3, np.nan])
        with pytest.warns(pm.exceptions.ImputationWarning):
            pm.Normal("missing", x[0], 1, observed=data)
        pm.Potential("soft", -(x**4).sum())
        rb.constrain("disk", (x**2).sum() < 4)
        pm.Normal("y", x.sum() * g, s, observed=[0.1, 0.2])
    return model


def test_no_term_is_split_twice_under_the_same_transforms(splits):
    model = build()
    assert sorted(TERMS) == sorted(v.name for v in (*model.basic_RVs, *model.potentials))
    splits.clear()
    rb.RollbackHMC(model=model)
    read = [graph for graph, module, _ in splits if not module.endswith(".values")]
    assert len(read) == len(TERMS)
    spaces = [space for _, module, space in splits if module.endswith(".values")]
    assert len(spaces) == len(TERMS) * len({id(space) for space in spaces})
    changes = [space.changed for space in {id(space): space for space in spaces}.values()]
    assert all(changes.count(change) == 1 for change in changes)
