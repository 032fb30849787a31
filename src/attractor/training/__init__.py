"""Training, step by step: the contract of a process, and the one supervised loop."""

from attractor.training.evaluate import evaluate as evaluate
from attractor.training.process import Diverged as Diverged
from attractor.training.process import Process as Process
from attractor.training.process import Row as Row
from attractor.training.process import Stopped as Stopped
from attractor.training.supervised import Plan as Plan
from attractor.training.supervised import Supervised as Supervised
