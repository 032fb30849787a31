"""The table of strategies: the only place where a strategy is registered."""

from collections.abc import Callable

from attractor.continual.agem import AGEM
from attractor.continual.base import Strategy
from attractor.continual.er import ER
from attractor.continual.ewc import EWC
from attractor.continual.freeze import Freeze
from attractor.continual.gem import GEM
from attractor.continual.hat import HAT
from attractor.continual.joint import Joint
from attractor.continual.metasgd_cl import MetaSGDCL
from attractor.continual.naive import Naive
from attractor.continual.stable import Stable

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "agem": AGEM,
    "er": ER,
    "ewc": EWC,
    "freeze": Freeze,
    "gem": GEM,
    "hat": HAT,
    "joint": Joint,
    "metasgd_cl": MetaSGDCL,
    "naive": Naive,
    "stable": Stable,
}
