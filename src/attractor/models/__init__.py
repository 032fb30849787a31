"""Networks assembled from cells and layers."""

from attractor.models.mlp import MLP as MLP
from attractor.models.point import Point as Point
from attractor.models.sequence import SequenceClassifier as SequenceClassifier
from attractor.models.sequence import SequenceTagger as SequenceTagger
