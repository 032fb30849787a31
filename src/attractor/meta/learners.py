"""Many networks of one kind at once: the learners that an optimiser is trained and tested on."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils._pytree import tree_map

from attractor.cells.base import penalised
from attractor.errors import InputError
from attractor.meta.fewer import Fewer
from attractor.optimisers import Rule, State, View
from attractor.optimisers.rule import other_size
from attractor.optimisers.view import tables
from attractor.tasks import Batch, Task
from attractor.tasks.base import Sampler
from attractor.team import gathered, share, team, unmoved

logger = logging.getLogger(__name__)

UNBATCHED = ("vmap", "atching rule")
"""What torch says where it cannot run something for many learners at once."""


@dataclass(frozen=True)
class Problem:
    """What a learner is, and what it learns.

    Args:
        model: makes a network from a generator.
        task: the data and the loss.
        batch_size: samples in each batch of a learner.
        stretch: a learner's parameters are so many times smaller than those of its network, which
            they are multiplied by: reparametrised, it wants other steps.
        weight: multiplies the gradients that a rule is told of; losses are told as they are.
        samples: of the training data, chosen at random for the learners of a round; all if None,
            or if there are fewer.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 20, 10], generator=g), Digits(order="flat"), 32)
    """

    model: Callable[[Generator], nn.Module]
    task: Task
    batch_size: int = 128
    stretch: float = 1.0
    weight: float = 1.0
    samples: int | None = None

    def draw(self, generator: Generator) -> dict[str, Any]:
        """Nothing: it is always the same; see `Distribution`."""
        return {}

    def made(self, drawn: Mapping[str, Any]) -> "Problem":
        """Itself."""
        return self

    def batches(self, generator: Generator) -> Sampler:
        """What its learners are shown."""
        if self.samples is None:
            return self.task.batches(self.batch_size, generator=generator)
        return Fewer(self.task, self.samples, self.batch_size, generator=generator)


class Learners:
    """Networks of one problem as the rows of a matrix, each with batches of its own.

    Args:
        problem: what they are.
        count: how many.
        copies: of each: networks that start alike and are shown the same batches.
        generator: draws their weights and their batches.

    Parameters that need no gradient are coordinates too, whose gradients are zero and which no
    update moves.

    Shape:
        parameters and gradients ``(learners, coordinates)``, losses ``(learners,)``; a batch has
        x and y ``(learners, ...)``.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 20, 10], generator=g), Digits(order="flat"), 32)
        >>> learners = Learners(problem, 3, generator=torch.Generator().manual_seed(0))
        >>> losses, gradients = learners.gradients(learners.start, learners.draw())
        >>> gradients.shape
        torch.Size([3, 1510])
    """

    def __init__(
        self, problem: Problem, count: int, *, copies: int = 1, generator: Generator
    ) -> None:
        networks = [problem.model(generator) for _ in range(count)]
        for module in networks[0].modules():
            if getattr(module, "running_mean", None) is not None:
                raise InputError(
                    f"expected networks without running statistics, but {type(module).__name__} "
                    "keeps some. Make it with track_running_stats=False."
                )
        stacked, self.buffers = stack_module_state(networks * copies)
        self.problem, self.copies = problem, copies
        self.one_by_one = False
        self.judged = _Judged(networks[0], problem.task)
        self.names = list(stacked)
        self.view = View.of((value[0] for value in stacked.values()), tables(networks[0]))
        start = torch.cat([v.detach().flatten(1) for v in stacked.values()], dim=1)
        self.start = start / problem.stretch
        self.frozen = {name for name, value in stacked.items() if not value.requires_grad}
        if self.frozen == {*stacked}:
            raise InputError(
                "expected networks with a parameter to train, but all of theirs are frozen. Try "
                "requires_grad_(True) on some."
            )
        still = [torch.full((v[0].numel(),), n in self.frozen) for n, v in stacked.items()]
        self.still = torch.cat(still).to(self.start.device) if self.frozen else None
        self.sampler = problem.batches(generator)

    def first_params(self, rule: Rule) -> Tensor:
        """Their parameters before the first update, in the type of the rule."""
        return self.start.to(next(rule.parameters()).dtype)

    def held(self, before: Tensor, after: Tensor, where: slice = slice(None)) -> Tensor:
        """What an update makes of coordinates, but for those of frozen parameters."""
        return after if self.still is None else torch.where(self.still[where], before, after)

    def told(self, gradient: Tensor) -> Tensor:
        """What a rule is told of a gradient: that of the loss as the problem weighs it."""
        return gradient * self.problem.weight

    def first_state(self, rule: Rule, params: Tensor) -> State:
        """What a rule remembers of them before their first update."""
        size = self.start.shape[1]
        if rule.size not in (None, size):
            raise other_size(rule, size)
        return rule.init(params, self.view)

    def draw(self) -> Batch:
        """The next batch of every learner."""
        drawn = [self.sampler.draw() for _ in range(len(self.start) // self.copies)]
        if drawn[0].lengths is not None or isinstance(drawn[0].x, tuple):
            raise InputError(
                "expected batches of one tensor without lengths, which learners can read side by "
                "side, but the task has ragged or paired inputs. Pad them in the task."
            )
        x, y = (
            torch.stack([getattr(one, name) for one in drawn] * self.copies) for name in ("x", "y")
        )
        return self.placed(Batch(x, y))

    def placed(self, batch: Batch) -> Batch:
        """A batch where the networks are, its numbers in their type."""
        dtype = self.start.dtype
        moved = batch.map(lambda one: one.to(dtype) if one.is_floating_point() else one)
        return moved.to(self.start.device)

    def losses(self, params: Tensor, batch: Batch, rows: slice | None = None) -> Tensor:
        """The loss of every learner on its batch; of those in `rows`, if only they are given."""
        buffers = self.buffers if rows is None else {k: b[rows] for k, b in self.buffers.items()}
        # in the network's own type, which may be another than the rule's
        tensors = self.view.tensors(params.to(self.start.dtype) * self.problem.stretch)
        named = dict(zip(self.names, tensors, strict=True))
        named |= {name: named[name].detach() for name in self.frozen}

        def loss(weights: dict[str, Tensor], buffers: dict[str, Any], x: Tensor, y: Tensor) -> Any:
            return functional_call(self.judged, (weights, buffers), (x, y))

        given = (_inside(named), _inside(buffers), batch.x, batch.y)
        if not self.one_by_one:
            try:
                result: Tensor = vmap(loss, randomness="different")(*given)
            except RuntimeError as error:
                if not any(word in str(error) for word in UNBATCHED):
                    raise
                self.one_by_one = True
                _say_slower(type(self.judged.network).__name__)
            else:
                return result
        return torch.stack([loss(*_of_one(given, k)) for k in range(len(params))])

    def judge(self, params: Tensor, batch: Batch) -> Tensor:
        """As `losses`, in evaluation mode: without what training draws, such as dropout."""
        training = self.judged.training
        self.judged.eval()
        try:
            return self.losses(params, batch)
        finally:
            self.judged.train(training)

    def gradients(
        self, params: Tensor, batch: Batch, *, create_graph: bool = False
    ) -> tuple[Tensor, Tensor]:
        """The losses and their gradients, with a graph of both if they are to be differentiated.

        In a team of processes each computes those of some learners, unless there is a graph.
        """
        count = len(params)
        if not create_graph and 1 < team().size <= count:
            with unmoved():
                parts = self._gradients(params, batch, share(count))
            losses, gradient = (gathered(part, count) for part in parts)
            return losses, gradient
        return self._gradients(params, batch, create_graph=create_graph)

    def _gradients(
        self, params: Tensor, batch: Batch, rows: slice | None = None, create_graph: bool = False
    ) -> tuple[Tensor, Tensor]:
        if rows is not None:
            params, batch = params[rows], batch[rows]
        with torch.enable_grad():
            point = params if create_graph else params.detach().requires_grad_()
            losses = self.losses(point, batch, rows)
            # a learner's loss depends on its own row alone, so the sum gives each its gradient
            (gradient,) = torch.autograd.grad(losses.sum(), point, create_graph=create_graph)
        return (losses, gradient) if create_graph else (losses.detach(), gradient)


class _Judged(nn.Module):
    """The loss of a network on a batch, as a module of which the weights can be replaced."""

    def __init__(self, network: nn.Module, task: Task) -> None:
        super().__init__()
        self.network, self.task = network, task

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return penalised(self.task.loss(self.network, Batch(x, y)), self.network)


@cache
def _say_slower(network: str) -> None:
    """Once for each kind of network."""
    logger.warning("%s cannot be run side by side by torch: its learners take turns", network)


def _of_one(given: Any, index: int) -> Any:
    """The part of one learner in tensors of all."""
    return tree_map(lambda tensor: tensor[index], given)


def _inside(tensors: dict[str, Any]) -> dict[str, Any]:
    """Tensors of a network by their names in `_Judged`."""
    return {f"network.{name}": tensor for name, tensor in tensors.items()}
