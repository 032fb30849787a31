"""Tasks: the data, the loss and the metrics of one problem each."""

from attractor.tasks.associative_recall import AssociativeRecall as AssociativeRecall
from attractor.tasks.base import IGNORE as IGNORE
from attractor.tasks.base import Batch as Batch
from attractor.tasks.base import Sampler as Sampler
from attractor.tasks.base import Split as Split
from attractor.tasks.base import Task as Task
from attractor.tasks.cifar10 import CIFAR10 as CIFAR10
from attractor.tasks.cifar_files import load_cifar10 as load_cifar10
from attractor.tasks.cifar_files import load_cifar100 as load_cifar100
from attractor.tasks.copy import CopyMemory as CopyMemory
from attractor.tasks.cub200 import load_cub200 as load_cub200
from attractor.tasks.denoise import Denoise as Denoise
from attractor.tasks.digits import Digits as Digits
from attractor.tasks.evaluation import evaluate as evaluate
from attractor.tasks.fashion_mnist import FashionMNIST as FashionMNIST
from attractor.tasks.generated import Generated as Generated
from attractor.tasks.images import ImageTask as ImageTask
from attractor.tasks.kmnist import KMNIST as KMNIST
from attractor.tasks.mnist import MNIST as MNIST
from attractor.tasks.objective import Objective as Objective
from attractor.tasks.quadratic import Quadratic as Quadratic
from attractor.tasks.rosenbrock import Rosenbrock as Rosenbrock
from attractor.tasks.sampler import Drawn as Drawn
from attractor.tasks.sampler import Shuffled as Shuffled
from attractor.tasks.table import TASKS as TASKS
