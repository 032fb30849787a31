"""Training, step by step: the contract of a process."""

from attractor.training.chained import Chained as Chained
from attractor.training.process import Diverged as Diverged
from attractor.training.process import Process as Process
from attractor.training.process import Row as Row
from attractor.training.process import Stopped as Stopped
