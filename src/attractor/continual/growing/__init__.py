"""Networks that grow and say the same: wider, deeper, with more answers."""

from attractor.continual.growing.deeper import deepen as deepen
from attractor.continual.growing.heads import more_answers as more_answers
from attractor.continual.growing.models import grow as grow
from attractor.continual.growing.models import grown as grown
from attractor.continual.growing.saved import as_saved as as_saved
from attractor.continual.growing.widening import Growth as Growth
