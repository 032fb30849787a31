"""Networks assembled from cells and layers."""

from attractor.models.convnet import ConvNet as ConvNet
from attractor.models.hcn import HCN as HCN
from attractor.models.heads import MultiHead as MultiHead
from attractor.models.mlp import MLP as MLP
from attractor.models.point import Point as Point
from attractor.models.res_mlp import ResMLP as ResMLP
from attractor.models.resnet import BasicBlock as BasicBlock
from attractor.models.resnet import ResNet as ResNet
from attractor.models.sequence import SequenceClassifier as SequenceClassifier
from attractor.models.sequence import SequenceTagger as SequenceTagger
from attractor.models.table import MODELS as MODELS
from attractor.models.table import make_model as make_model
