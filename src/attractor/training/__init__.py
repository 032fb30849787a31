"""Training, step by step: the contract of a process, and the one supervised loop."""

from attractor.training.chained import Chained as Chained
from attractor.training.evaluate import evaluate as evaluate
from attractor.training.fit import Fitted as Fitted
from attractor.training.fit import fit as fit
from attractor.training.process import Diverged as Diverged
from attractor.training.process import Process as Process
from attractor.training.process import Row as Row
from attractor.training.process import Stopped as Stopped
from attractor.training.process import finish as finish
from attractor.training.pruning import Dense as Dense
from attractor.training.pruning import hold as hold
from attractor.training.pruning import smallest as smallest
from attractor.training.supervised import Plan as Plan
from attractor.training.supervised import Supervised as Supervised
from attractor.training.tuning import Tuning as Tuning
