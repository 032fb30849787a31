"""Gradient episodic memory."""

from itertools import accumulate, pairwise
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from attractor.checks import flag, number, one_of, whole
from attractor.continual.gradients import GroupGradients
from attractor.continual.replay.episodes import Episodes, OfTasks
from attractor.continual.rows import GroupMatrix, shares
from attractor.continual.screening import Screen
from attractor.continual.strategies.base import Loss, Strategy, latest
from attractor.continual.weighting import weighted
from attractor.errors import InputError
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream

RIDGE = 1e-5
"""By which the squared length of each gradient is raised, so that there is one solution."""


class GEM(Strategy):
    r"""Gradient episodic memory: the nearest gradient that lets no earlier task's loss grow.

    .. math::
        \min_{\tilde g} \tfrac12 \|\tilde g - g\|^2 \quad \text{s.t.} \quad
        \langle \tilde g, g_u \rangle \ge 0 \text{ for all } u < V

    solved through its dual, in as many unknowns as there are earlier tasks:

    .. math::
        \tilde g = g + G^\top v, \qquad
        v = \arg\min_{v \ge \gamma} \tfrac12 v^\top G G^\top v + g^\top G^\top v

    Whatever the lengths of the gradients, without a margin
    :math:`\langle \tilde g, g_u \rangle \ge -0.0032\, \|g\| \|g_u\|` at worst, where tasks
    contradict one another, and nearly always no less than zero.

    Args:
        size: samples kept of each task; all of them give :math:`g_u`, at every update.
        margin: :math:`\gamma`, which pushes the update towards the earlier tasks.
        memory: ``"hard"`` (the first samples of each task) or ``"ring"`` (``size`` in all).
        every: updates between new gradients of the memories, which are used in all of them; 1 is
            the paper's, more is faster.
        screened: find the tasks that would be hurt by forward passes, and take gradients of those
            that bind alone, see `attractor.continual.screening`: the same solution, faster for
            networks that take a pass for each task.

    Example:
        >>> GEM(256, margin=0.5).size
        256

    Departs from the paper: the first samples of a task are kept, as the thesis has it, instead of
    the last. Its code adds 0.001 to the diagonal of :math:`G G^\top`, which outweighs gradients
    that are shorter than 0.03; here each entry of the diagonal is raised by 0.00001 of itself.

    References:
        Lopez-Paz and Ranzato (2017), Gradient episodic memory for continual learning,
        arXiv:1706.08840, equations 8 to 13 and algorithm 1; the margin is that of its code.
    """

    reference = "lopezpaz2017gradient"
    newer = ("screened",)

    def __init__(
        self,
        size: int = 250,
        *,
        margin: float = 0.5,
        memory: OfTasks = "hard",
        every: int = 1,
        screened: bool = False,
    ) -> None:
        self.size, self.memory = whole("size", size, 1), memory
        self.margin, self.every = number("margin", margin, 0), whole("every", every, 1)
        self.screened = flag("screened", screened)
        if screened and every > 1:
            raise InputError(
                "expected either screened=True, which looks at each update, or gradients "
                f"of memories every few updates, but got every={every} too. Leave one out."
            )

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        one_of("memory", self.memory, get_args(OfTasks))
        self.episodes = Episodes(
            self.memory, self.size, len(stream), generator=generator, stream=stream
        )
        self.gradients, self._screen = GroupGradients(model), Screen(model)
        self.conflict, self._updates = 0.0, 0
        self._old: GroupMatrix | None = None
        return model

    def adopt(self, model: nn.Module) -> None:
        self.gradients, self._old = GroupGradients(model), None
        self._screen = Screen(model)

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> None:
        self._old = None

    def extend(self, stream: Stream) -> None:
        self.episodes.extend(stream)

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._task, self._base = latest(batch), base
        self.episodes.add(batch)

    def after_backward(self, model: nn.Module) -> None:
        past = self.episodes.before(self._task)
        if not past:
            self.conflict = 0.0
            return
        if self.screened:
            old, sizes = self.episodes.all_of(past), self.episodes.sizes(past)
            self._screen.look(old, sizes, self._base)
            return self.gradients.flat.set_gradient(self._binding(model, old, sizes))
        G = self._old
        if G is None or self._updates % self.every == 0:
            old, sizes = self.episodes.all_of(past), self.episodes.sizes(past)
            G = self.gradients.of_groups(old, sizes, self._base)
            self._old, self._updates = (G if self.every > 1 else None), 0
        self._updates += 1
        g = self.gradients.flat.gradient()
        against = G.dot(g) < 0
        self.conflict = float(against.double().mean())
        if bool(against.any()):
            self.gradients.flat.set_gradient(project(g, G, self.margin))

    def _binding(self, model: nn.Module, old: Batch, sizes: list[int]) -> Tensor:
        r"""The projected gradient, with gradients of those tasks alone that bind.

        With :math:`g' = g + \gamma \sum_u g_u`, one gradient, the dual asks for the :math:`w \ge 0`
        for which :math:`g' + \sum_u w_u g_u` hurts none; w is zero where a task does not bind.
        Those that do are found in turn: what :math:`g'` hurts, then what the solution for these
        still hurts, until there is none.
        """
        g = self.gradients.flat.gradient()
        hurt = self._screen.overlaps(g) < 0
        self.conflict = float(hurt.double().mean())
        if not bool(hurt.any()):
            return g
        if self.margin:
            every = self._base(model, weighted(old, shares(sizes)))
            g = g + self.margin * self.gradients.flat.gradient_of(every)
        spans = list(pairwise(accumulate(sizes, initial=0)))
        found, active, G = g, torch.zeros_like(hurt), None
        while bool((fresh := (self._screen.overlaps(found) < 0) & ~active).any()):
            active |= fresh
            chosen = fresh.nonzero().flatten().tolist()
            rows = torch.cat([torch.arange(*spans[one]) for one in chosen])
            new = self.gradients.of_groups(old[rows], [sizes[one] for one in chosen], self._base)
            G = new if G is None else G.above(new)
            found = project(g, G)
        return found

    def state_dict(self) -> dict[str, Any]:
        state = self.episodes.state_dict()
        if self.every == 1:
            return state
        old = [] if self._old is None else self._old.parts
        return state | {"old": [part.clone() for part in old], "updates": self._updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.episodes.load_state_dict(state)
        if self.every > 1:
            self._old = GroupMatrix(list(state["old"])) if state["old"] else None
            self._updates = state["updates"]


def project(g: Tensor, G: GroupMatrix, margin: float = 0.0) -> Tensor:
    """The nearest gradient that points away from none of the others.

    Args:
        g: the gradient.
        G: those of the earlier tasks.
        margin: the least of the multipliers; 0 is the projection itself.

    Shape:
        g ``(parameters,)``, G ``(tasks, parameters)`` in all; ``(parameters,)``.

    Example:
        >>> new = project(torch.tensor([1.0, -3.0]), GroupMatrix([torch.tensor([[0.0, 2.0]])]))
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

    With gradients of length one, :math:`v = \gamma + w` and :math:`P = A^\top A` it is the
    least-squares problem :math:`\min_{w \ge 0} \|A w - b\|` with
    :math:`A^\top b = -(q + P \gamma)`. It has a solution for any finite input: zero, equal and
    opposite gradients, of any length.

    Args:
        gram: :math:`G G^\top`; its diagonal is raised by a share of itself.
        overlap: :math:`q = G g`.
        margin: :math:`\gamma`.

    Shape:
        gram ``(tasks, tasks)``, overlap ``(tasks,)``; ``(tasks,)``.

    Example:
        >>> multipliers(np.array([[4.0]]), np.array([-2.0])).round(3)
        array([0.5])
    """
    tasks = len(overlap)
    if not (np.isfinite(gram).all() and np.isfinite(overlap).all()):
        return np.zeros(tasks)  # the training has diverged, and no direction is better than another
    lengths = np.sqrt(gram.diagonal())
    lengths[lengths == 0] = 1
    values, vectors = np.linalg.eigh(gram / np.outer(lengths, lengths))
    # none is below zero but for the rounding of single precision
    values = np.maximum(values, 0) + RIDGE
    A = np.sqrt(values)[:, None] * vectors.T
    q = overlap / lengths + A.T @ (A @ (margin * lengths))
    b = -(vectors.T @ q) / np.sqrt(values)
    size = max(float(np.abs(b).max()), 1e-300)  # the solver has tolerances of its own
    return margin + size * _least(A, b / size) / lengths


def _least(A: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""The non-negative w with the least :math:`\|A w - b\|`, by the first way that gets there."""
    from scipy.optimize import lsq_linear, nnls  # imported late: it takes a third of a second

    P, q = A.T @ A, -(A.T @ b)
    try:
        w: NDArray[np.float64] = nnls(A, b)[0]
    except RuntimeError:  # too many exchanges between the active and the passive set
        w = np.zeros(len(q))
    if not _is_least(P, q, w):  # where a slope is zero but for its rounding, it may end elsewhere
        w = lsq_linear(A, b, bounds=(0, np.inf), method="bvls", tol=1e-12).x
    return w if _is_least(P, q, w) else _descend(P, q)


def _is_least(P: NDArray[np.float64], q: NDArray[np.float64], w: NDArray[np.float64]) -> bool:
    """Whether no way down is left: slopes of at least zero, and zero where w is above it."""
    slope = P @ w + q
    return bool((slope > -1e-8).all() and (np.abs(slope * w) < 1e-8).all())


def _descend(P: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same problem by coordinate descent, which converges for any positive definite P."""
    w = np.zeros(len(q))
    for _ in range(1000):
        for i in range(len(q)):
            w[i] = max(0.0, w[i] - (P[i] @ w + q[i]) / P[i, i])
    return w
