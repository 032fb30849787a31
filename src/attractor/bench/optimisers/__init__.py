"""How well optimisers train: torch's own, others and learned rules, on the same tasks."""

from attractor.bench.optimisers.contenders import CONTENDERS as CONTENDERS
from attractor.bench.optimisers.contenders import rules as rules
from attractor.bench.optimisers.run import bench as bench
from attractor.bench.optimisers.tasks import HORIZONS as HORIZONS
from attractor.bench.optimisers.tasks import TASKS as TASKS
