"""Lifelong learning of recurrent networks: levels that grow harder, and networks that grow."""

from attractor.continual.lifelong.curriculum import Curriculum as Curriculum
from attractor.continual.lifelong.curriculum import Rules as Rules
from attractor.continual.lifelong.levels import Level as Level
from attractor.continual.lifelong.levels import Levels as Levels
from attractor.continual.lifelong.levels import levels as levels
from attractor.continual.lifelong.measures import LifelongResult as LifelongResult
from attractor.continual.lifelong.triggers import TRIGGERS as TRIGGERS
from attractor.continual.lifelong.triggers import Conflict as Conflict
from attractor.continual.lifelong.triggers import Plateau as Plateau
from attractor.continual.lifelong.triggers import Rank as Rank
from attractor.continual.lifelong.triggers import Trigger as Trigger
