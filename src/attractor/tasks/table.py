"""The table of tasks: the only place where a task is registered."""

from attractor.tasks.associative_recall import AssociativeRecall
from attractor.tasks.base import Task
from attractor.tasks.cifar10 import CIFAR10
from attractor.tasks.copy import CopyMemory
from attractor.tasks.denoise import Denoise
from attractor.tasks.digits import Digits
from attractor.tasks.fashion_mnist import FashionMNIST
from attractor.tasks.kmnist import KMNIST
from attractor.tasks.mnist import MNIST

TASKS: dict[str, type[Task]] = {
    "cifar10": CIFAR10,
    "copy": CopyMemory,
    "denoise": Denoise,
    "digits": Digits,
    "fashion_mnist": FashionMNIST,
    "kmnist": KMNIST,
    "mnist": MNIST,
    "recall": AssociativeRecall,
}
