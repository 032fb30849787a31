"""Where many runs are done: on this machine, on a Ray cluster, or by Slurm."""

from attractor.runs.engines.table import ENGINES as ENGINES
from attractor.runs.engines.table import Places as Places
