"""Learned optimisers: rules with weights of their own, as drop-ins for torch.optim."""

from attractor.optimisers.anytime import Anytime as Anytime
from attractor.optimisers.decaynet import DecayNetOptimiser as DecayNetOptimiser
from attractor.optimisers.dmsgd import DMSGD as DMSGD
from attractor.optimisers.drop_in import Learned as Learned
from attractor.optimisers.files import load_rule as load_rule
from attractor.optimisers.files import save_rule as save_rule
from attractor.optimisers.files import shipped as shipped
from attractor.optimisers.global_form import GlobalOptimiser as GlobalOptimiser
from attractor.optimisers.global_m2sgd import GlobalM2SGD as GlobalM2SGD
from attractor.optimisers.ihc_lstm import IHCLSTMOptimiser as IHCLSTMOptimiser
from attractor.optimisers.lstm import LSTMOptimiser as LSTMOptimiser
from attractor.optimisers.m2sgd import M2SGD as M2SGD
from attractor.optimisers.meta_sgd import MetaSGD as MetaSGD
from attractor.optimisers.mtl2l import MTL2L as MTL2L
from attractor.optimisers.preprocess import preprocess as preprocess
from attractor.optimisers.rule import Rule as Rule
from attractor.optimisers.rule import State as State
from attractor.optimisers.sparse import compact as compact
from attractor.optimisers.sparse import dense_state_dict as dense_state_dict
from attractor.optimisers.sparse import load_sparse as load_sparse
from attractor.optimisers.sparse import save_sparse as save_sparse
from attractor.optimisers.sparse import sparse_state_dict as sparse_state_dict
from attractor.optimisers.sparse import sparsity as sparsity
from attractor.optimisers.table import OPTIMISERS as OPTIMISERS
