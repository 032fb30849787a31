"""The metrics of runs in the tools that others look at them with."""

from attractor.tracking.base import About as About
from attractor.tracking.base import Point as Point
from attractor.tracking.base import Sink as Sink
from attractor.tracking.base import Writer as Writer
from attractor.tracking.live import Live as Live
from attractor.tracking.live import track as track
from attractor.tracking.mirror import Mirror as Mirror
from attractor.tracking.table import SINKS as SINKS
from attractor.tracking.tracker import Tracker as Tracker
