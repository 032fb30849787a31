"""The table of strategies: the only place where a strategy is registered."""

from collections.abc import Callable

from attractor.continual.strategies.agem import AGEM
from attractor.continual.strategies.base import Strategy
from attractor.continual.strategies.der import DER
from attractor.continual.strategies.derpp import DERpp
from attractor.continual.strategies.er import ER
from attractor.continual.strategies.er_ace import ERACE
from attractor.continual.strategies.ewc import EWC
from attractor.continual.strategies.freeze import Freeze
from attractor.continual.strategies.gdumb import GDumb
from attractor.continual.strategies.gem import GEM
from attractor.continual.strategies.hat import HAT
from attractor.continual.strategies.icarl import ICaRL
from attractor.continual.strategies.joint import Joint
from attractor.continual.strategies.lwf import LwF
from attractor.continual.strategies.mas import MAS
from attractor.continual.strategies.metasgd_cl import MetaSGDCL
from attractor.continual.strategies.naive import Naive
from attractor.continual.strategies.online_ewc import OnlineEWC
from attractor.continual.strategies.progressive import Progressive
from attractor.continual.strategies.si import SI
from attractor.continual.strategies.slda import SLDA
from attractor.continual.strategies.stable import Stable

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "agem": AGEM,
    "der": DER,
    "derpp": DERpp,
    "er": ER,
    "er_ace": ERACE,
    "ewc": EWC,
    "freeze": Freeze,
    "gdumb": GDumb,
    "gem": GEM,
    "hat": HAT,
    "icarl": ICaRL,
    "joint": Joint,
    "lwf": LwF,
    "mas": MAS,
    "metasgd_cl": MetaSGDCL,
    "naive": Naive,
    "online_ewc": OnlineEWC,
    "progressive": Progressive,
    "si": SI,
    "slda": SLDA,
    "stable": Stable,
}
