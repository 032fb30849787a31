"""Outer training of learned optimisers, and fair comparison of any optimisers."""

from attractor.meta.compare import Trial as Trial
from attractor.meta.compare import compare as compare
from attractor.meta.distribution import Distribution as Distribution
from attractor.meta.learners import Learners as Learners
from attractor.meta.learners import Problem as Problem
from attractor.meta.problems import problem_of as problem_of
from attractor.meta.trainer import MetaTrainer as MetaTrainer
from attractor.meta.trainer import train as train
from attractor.training.process import Row as Row

test = compare
"""`compare` by the name that goes with `train`."""
