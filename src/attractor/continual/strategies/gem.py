"""Gradient episodic memory."""

from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn

from attractor.checks import one_of
from attractor.continual.gradients import GroupGradients
from attractor.continual.replay.episodes import Episodes, OfTasks
from attractor.continual.rows import Rows
from attractor.continual.strategies.base import Loss, Strategy, cross_entropy, plain
from attractor.tasks.streams import Samples, Stream

RIDGE = 1e-3
"""Added to the diagonal, so that there is one solution whatever the gradients are."""

ROUNDING = 1e-7
"""The least eigenvalue, relative to the largest entry: gradients are in single precision."""


class GEM(Strategy):
    r"""Gradient episodic memory: the nearest gradient that lets no earlier task's loss grow.

    .. math::
        \min_{\tilde g} \tfrac12 \|\tilde g - g\|^2 \quad \text{s.t.} \quad
        \langle \tilde g, g_u \rangle \ge 0 \text{ for all } u < V

    solved through its dual, in as many unknowns as there are earlier tasks:

    .. math::
        \tilde g = g + G^\top v, \qquad
        v = \arg\min_{v \ge \gamma} \tfrac12 v^\top G G^\top v + g^\top G^\top v

    Args:
        size: samples kept of each task; all of them give :math:`g_u`, at every update.
        margin: :math:`\gamma`, which pushes the update towards the earlier tasks.
        memory: ``"hard"`` (the first samples of each task) or ``"ring"`` (``size`` in all).

    Example:
        >>> GEM(256, margin=0.5).size
        256

    Departs from the paper: the first samples of a task are kept, as the thesis has it, instead of
    the last.

    References:
        Lopez-Paz and Ranzato (2017), Gradient episodic memory for continual learning,
        arXiv:1706.08840, equations 8 to 13 and algorithm 1; the margin and the ridge of 0.001 are
        those of its code.
    """

    reference = "lopezpaz2017gradient"

    def __init__(self, size: int = 250, *, margin: float = 0.5, memory: OfTasks = "hard") -> None:
        self.size, self.margin, self.memory = size, margin, memory

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        one_of("memory", self.memory, get_args(OfTasks))
        self.episodes = Episodes(self.memory, self.size, len(stream), generator=generator)
        self.gradients = GroupGradients(model)
        return model

    def loss(self, model: nn.Module, batch: Samples, base: Loss = cross_entropy) -> Tensor:
        self._task, self._base = int(batch.task[0]), plain(base)
        self.episodes.add(batch, self._task)
        return base(model, batch)

    def after_backward(self, model: nn.Module) -> None:
        past = list(range(self._task))
        if not past:
            return
        old, sizes = self.episodes.all_of(past), self.episodes.sizes(past)
        G = self.gradients.of_groups(old, sizes, self._base)
        g = self.gradients.flat.gradient()
        if bool((G.dot(g) < 0).any()):
            self.gradients.flat.set_gradient(project(g, G, self.margin))

    def state_dict(self) -> dict[str, Any]:
        return self.episodes.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes.load_state_dict(state)


def project(g: Tensor, G: Rows, margin: float = 0.0) -> Tensor:
    """The nearest gradient that points away from none of the others.

    Args:
        g: the gradient.
        G: those of the earlier tasks.
        margin: the least of the multipliers; 0 is the projection itself.

    Shape:
        g ``(parameters,)``, G ``(tasks, parameters)`` in all; ``(parameters,)``.

    Example:
        >>> new = project(torch.tensor([1.0, -3.0]), Rows([torch.tensor([[0.0, 2.0]])]))
        >>> torch.allclose(new, torch.tensor([1.0, 0.0]), atol=1e-3)
        True
    """
    gram, overlap = (t.double().cpu().numpy() for t in (G.gram(), G.dot(g)))
    v = multipliers(gram, overlap, margin)
    return g + G.combine(torch.from_numpy(v).to(g))


def multipliers(
    gram: NDArray[np.float64], overlap: NDArray[np.float64], margin: float = 0.0
) -> NDArray[np.float64]:
    r"""The dual solution :math:`\arg\min_{v \ge \gamma} \tfrac12 v^\top P v + q^\top v`.

    With :math:`v = \gamma + w` and :math:`P = A^\top A` it is the least-squares problem
    :math:`\min_{w \ge 0} \|A w - b\|` with :math:`A^\top b = -(q + P \gamma)`. It has a solution
    for any finite input: zero, equal and opposite gradients, of any size.

    Args:
        gram: :math:`G G^\top`; a ridge is added to it.
        overlap: :math:`q = G g`.
        margin: :math:`\gamma`.

    Shape:
        gram ``(tasks, tasks)``, overlap ``(tasks,)``; ``(tasks,)``.

    Example:
        >>> multipliers(np.array([[4.0]]), np.array([-2.0])).round(3)
        array([0.5])
    """
    from scipy.optimize import nnls  # imported late: it takes a third of a second

    tasks = len(overlap)
    if not (np.isfinite(gram).all() and np.isfinite(overlap).all()):
        return np.zeros(tasks)  # the training has diverged, and no direction is better than another
    P = gram + RIDGE * np.eye(tasks)
    scale = np.abs(P).max()
    values, vectors = np.linalg.eigh(P / scale)
    # single precision may cost a large Gram matrix more than the ridge
    values = np.maximum(values, max(RIDGE / scale, ROUNDING))
    A = np.sqrt(values)[:, None] * vectors.T
    q = overlap / scale + A.T @ (A @ np.full(tasks, margin))
    b = -(vectors.T @ q) / np.sqrt(values)
    try:
        w, _ = nnls(A, b)
    except RuntimeError:  # too many exchanges between the active and the passive set
        w = _descend(A.T @ A, q)
    return margin + w


def _descend(P: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same problem by coordinate descent, which converges for any positive definite P."""
    w = np.zeros(len(q))
    for _ in range(1000):
        for i in range(len(q)):
            w[i] = max(0.0, w[i] - (P[i] @ w + q[i]) / P[i, i])
    return w
