"""The table of strategies: the only place where a strategy is registered."""

from collections.abc import Callable

from attractor.continual.strategies.agem import AGEM
from attractor.continual.strategies.base import Strategy
from attractor.continual.strategies.er import ER
from attractor.continual.strategies.ewc import EWC
from attractor.continual.strategies.freeze import Freeze
from attractor.continual.strategies.gem import GEM
from attractor.continual.strategies.hat import HAT
from attractor.continual.strategies.joint import Joint
from attractor.continual.strategies.metasgd_cl import MetaSGDCL
from attractor.continual.strategies.naive import Naive
from attractor.continual.strategies.online_ewc import OnlineEWC
from attractor.continual.strategies.stable import Stable

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
    "online_ewc": OnlineEWC,
    "stable": Stable,
}
