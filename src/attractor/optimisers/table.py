"""The one table of learned optimisers."""

from typing import Any

from attractor.optimisers.anytime import Anytime
from attractor.optimisers.decaynet import DecayNetOptimiser
from attractor.optimisers.dmsgd import DMSGD
from attractor.optimisers.global_form import GlobalOptimiser
from attractor.optimisers.global_m2sgd import GlobalM2SGD
from attractor.optimisers.ihc_lstm import IHCLSTMOptimiser
from attractor.optimisers.lstm import LSTMOptimiser
from attractor.optimisers.m2sgd import M2SGD
from attractor.optimisers.meta_sgd import MetaSGD
from attractor.optimisers.mtl2l import MTL2L

OPTIMISERS: dict[str, Any] = {
    "lstm": LSTMOptimiser,
    "decaynet": DecayNetOptimiser,
    "global": GlobalOptimiser,
    "ihc_lstm": IHCLSTMOptimiser,
    "mtl2l": MTL2L,
    "meta_sgd": MetaSGD,
    "dmsgd": DMSGD,
    "m2sgd": M2SGD,
    "m2sgd_global": GlobalM2SGD,
    "anytime": Anytime,
}
"""Every learned optimiser by its key; the command line, the docs and the tests read it."""
