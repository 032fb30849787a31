"""The contract of a strategy: what it may do, and when."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Generator, Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from attractor.errors import InputError
from attractor.tasks import Batch, StoredTask, cross_entropy
from attractor.tasks.streams import Stream

Loss = Callable[[nn.Module, Batch], Tensor]
r"""From a model and some samples to a number to be made small.

Samples without weights (``batch.weight is None``) give the mean of their losses, samples with
weights give :math:`\sum_i w_i \ell_i`, where :math:`\ell_i` depends on sample i alone. Strategies
that average each task's loss on its own say so through the weights. They try first whether a loss
heeds them; one that does not costs a pass for each task instead of one for all.
"""


def latest(batch: Batch) -> int:
    """The task that is being learnt: the last in the stream of those in the batch."""
    return int(batch.places.max())


class Strategy:
    """A way to learn one task after the other. Every method may be left as it is.

    The one training loop, or your own, calls them in this order:

        model = strategy.start(model, stream, generator=g)
        for task in stream:
            strategy.start_task(model, task, optimiser, updates)
            for batch in ...:
                optimiser.zero_grad()
                strategy.loss(model, batch).backward()
                strategy.observe(batch)
                strategy.after_backward(model)
                strategy.step(model, optimiser)
            strategy.end_task(model, task)

    A constructor takes settings only; `start` makes the state, so that a strategy can be used
    again. `loss` is pure: it may be asked any number of times, also on batches that are not learnt
    from. What is remembered of a batch is written by `observe`, once per update.
    """

    reference: ClassVar[str]
    """Key of the paper in ``references.bib``."""

    wraps_model: ClassVar[bool] = False
    """Whether `start` gives another model than it gets."""

    adds_samples: ClassVar[bool] = False
    """Whether its loss is on more samples than those of the batch."""

    sets_rate: ClassVar[bool] = False
    """Whether it changes the rate of the optimiser."""

    limits: Mapping[str, str] = {}
    """What it cannot do: kinds of networks or keys of optimisers, and why; refused in words."""

    newer: ClassVar[tuple[str, ...]] = ()
    """Settings that came later, and tell no strategy from another while they are as by default: so
    learners from before go on."""

    own_rates: ClassVar[bool] = False
    """Whether it steps at rates of its own, whatever the optimiser's."""

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"{type(self).__name__}({options})"

    def settings(self) -> dict[str, Any]:
        """What it was made with: the attributes named as the arguments of its constructor."""
        return {name: vars(self).get(name) for name in inspect.signature(type(self)).parameters}

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        """Before the first task: make memories, and wrap the model if need be."""
        return model

    def extend(self, stream: Stream) -> None:
        """The stream has one task more than it had: make room for it."""

    def adopt(self, model: nn.Module) -> None:
        """Go on with a model that has grown and says the same.

        A strategy that keeps something for each weight refuses.
        """
        kept = [name for name in ("anchors", "anchor", "frozen", "used") if hasattr(self, name)]
        if kept:
            raise InputError(
                f"expected a strategy that can go on with a network that has grown, but "
                f"{type(self).__name__} keeps numbers for each of its weights. Try gem or er."
            )

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> nn.Module | None:
        """Before the first of a task's updates; another model, if it is to go on with another."""
        return None

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        """What to make small, given a batch and the loss on samples; to ask changes nothing."""
        return base(model, batch)

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        """Remember a batch, once per update; `base` is the loss that `loss` was given."""

    def after_backward(self, model: nn.Module) -> None:
        """Change the gradients."""

    def step(self, model: nn.Module, optimiser: Optimizer) -> None:
        """Change the parameters."""
        trains(optimiser).step()

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        """After the last of a task's updates."""

    def state_dict(self) -> dict[str, Any]:
        """Tensors, plain values, and dictionaries and lists of them: all that the tasks left."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another strategy with the same settings was; `start` comes first."""
        if state:
            raise InputError(
                f"expected no state for {type(self).__name__}, but got {', '.join(state)}. "
                "Resume with the strategy that was saved."
            )


def trains(optimiser: Optimizer | LRScheduler) -> Optimizer:
    """The optimiser, once it is known to be one: a scheduler's `step` would train nothing."""
    if isinstance(optimiser, LRScheduler):
        raise InputError(
            f"expected an optimiser, but got the scheduler {type(optimiser).__name__}, whose step "
            "changes rates and no parameters. Give the strategy its optimiser, and call the "
            "scheduler's step after it."
        )
    return optimiser
