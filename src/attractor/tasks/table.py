"""The table of tasks: the only place where a task is registered."""

from attractor.tasks.addition import BinaryAddition
from attractor.tasks.associative_recall import AssociativeRecall
from attractor.tasks.base import Task
from attractor.tasks.bitwise import BitCopy, BitRecall
from attractor.tasks.copy import CopyMemory
from attractor.tasks.denoise import Denoise
from attractor.tasks.generate import Generate
from attractor.tasks.images.cifar10 import CIFAR10
from attractor.tasks.images.digits import Digits
from attractor.tasks.images.fashion_mnist import FashionMNIST
from attractor.tasks.images.kmnist import KMNIST
from attractor.tasks.images.mnist import MNIST
from attractor.tasks.images.stl10 import STL10
from attractor.tasks.images.svhn import SVHN
from attractor.tasks.language import PTBCharacters, PTBWords, TextFolder, WikiText2
from attractor.tasks.pairs import SICK, SNLI
from attractor.tasks.series import TimeSeries
from attractor.tasks.strokes import StrokeDigits

TASKS: dict[str, type[Task]] = {
    "addition": BinaryAddition,
    "cifar10": CIFAR10,
    "copy": CopyMemory,
    "denoise": Denoise,
    "digits": Digits,
    "fashion_mnist": FashionMNIST,
    "generate": Generate,
    "kmnist": KMNIST,
    "mnist": MNIST,
    "ntm_copy": BitCopy,
    "ntm_recall": BitRecall,
    "ptb_char": PTBCharacters,
    "ptb_word": PTBWords,
    "recall": AssociativeRecall,
    "series": TimeSeries,
    "sick": SICK,
    "snli": SNLI,
    "stl10": STL10,
    "strokes": StrokeDigits,
    "svhn": SVHN,
    "text": TextFolder,
    "wikitext2": WikiText2,
}
