"""What is stored of targets that are computed is what they are computed to be."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

from attractor.reproduction import computed
from attractor.reproduction.computed.table import compute
from attractor.reproduction.outcomes import EXACT, stored
from attractor.reproduction.targets import target

ROUNDING = 1e-9
"""What is below it, or a logarithm to the base of ten below that of it, is an error of rounding."""

QUICK = (
    "000/table-2.1",
    "000/section-2.1.1",
    "000/figure-2.5",
    "000/figure-2.6",
    "000/figure-2.7",
    "000/figure-2.8",
    "000/figure-2.9",
    "000/section-3.1.3.2",
    "000/figure-4.1",
    "000/figure-4.2",
    "000/section-4.1.4",
    "000/section-4.1.4.2",
    "000/section-4.2.2",
    "000/section-4.2.3",
    "000/section-4.2.5.2",
    "000/section-4.2.5.3",
    "000/section-4.2.6",
    "000/section-5.2.2",
    "000/section-5.2.3.1",
    "000/figure-6.9",
    "000/section-6.2.4",
    "001/section-2.3",
    "001/figure-3.3",
    "001/section-3.4",
    "001/theorem-1",
    "001/section-3.5",
    "001/section-4.3.1",
    "001/figure-3.5",
    "001/section-5.4.5",
    "001/table-5.1",
    "004/appendix-b.1",
)
"""Targets that take no data and, of a seed, about a second at most."""


@pytest.fixture(autouse=True)
def _one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in iter_modules(computed.__path__):
        module = import_module(f"{computed.__name__}.{found.name}")
        if isinstance(getattr(module, "SEEDS", None), range):
            monkeypatch.setattr(module, "SEEDS", range(1))


@pytest.mark.parametrize("key", QUICK)
def test_what_is_stored_is_computed_again(key: str) -> None:
    kept = {
        (one.experiment, one.label, one.measure, one.seed): one.value
        for one in stored(f"{target(key).slug}.{EXACT}").rows
    }
    for one in compute(key).rows:
        before = kept[one.experiment, one.label, one.measure, one.seed]
        least = -9.0 if "log10" in one.measure else ROUNDING
        if max(one.value, before) > least:
            assert one.value == pytest.approx(before, rel=1e-4, abs=ROUNDING), one
