"""Networks assembled from cells and layers."""

from attractor.models.convnet import ConvNet as ConvNet
from attractor.models.draw import DRAW as DRAW
from attractor.models.hcn import HCN as HCN
from attractor.models.heads import MultiHead as MultiHead
from attractor.models.language_model import LanguageModel as LanguageModel
from attractor.models.mlp import MLP as MLP
from attractor.models.pair_classifier import PairClassifier as PairClassifier
from attractor.models.point import Point as Point
from attractor.models.res_mlp import ResMLP as ResMLP
from attractor.models.resnet import BasicBlock as BasicBlock
from attractor.models.resnet import ResNet as ResNet
from attractor.models.sequence import SequenceClassifier as SequenceClassifier
from attractor.models.sequence import SequenceTagger as SequenceTagger
from attractor.models.stroke_reader import StrokeReader as StrokeReader
from attractor.models.table import MODELS as MODELS
from attractor.models.table import make_model as make_model
