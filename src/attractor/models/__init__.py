"""Networks assembled from cells and layers."""

from attractor.models.sequence import SequenceClassifier as SequenceClassifier
from attractor.models.sequence import SequenceTagger as SequenceTagger
