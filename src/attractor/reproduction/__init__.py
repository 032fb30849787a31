"""Every table, figure and claim of the five documents: what to run, what came out, the verdict."""

from attractor.reproduction.outcomes import Outcomes as Outcomes
from attractor.reproduction.published import published as published
from attractor.reproduction.targets import TARGETS as TARGETS
from attractor.reproduction.targets import target as target
from attractor.reproduction.verdicts import judge as judge
