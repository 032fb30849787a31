"""Several strategies as one."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from attractor.continual.strategies.base import Loss, Strategy
from attractor.errors import InputError
from attractor.tasks import Batch, StoredTask
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


def combine(*strategies: Strategy) -> Strategy:
    """One strategy out of several, such as ``combine(ER(), Stable())``."""
    return strategies[0] if len(strategies) == 1 else Combined(strategies)


class Combined(Strategy):
    """Several strategies at once.

    A strategy that wraps the model starts before the others, and one that adds samples gives its
    loss to the others as the loss on the batch, in whatever order they are named. Gradients are
    changed in the order of the names.

    Args:
        strategies: at most one of a kind.

    Example:
        >>> from attractor.continual import ER, Stable, combine
        >>> combine(Stable(0.9), ER("ring", 250))  # doctest: +ELLIPSIS
        combine(Stable(gamma=0.9, least=5e-05), ER(memory='ring', size=250, ...))
    """

    def __init__(self, strategies: Sequence[Strategy]) -> None:
        self.strategies = list(strategies)
        self.limits = {kind: why for one in strategies for kind, why in one.limits.items()}
        steps = [one for one in strategies if type(one).step is not Strategy.step]
        _at_most_one("makes the step itself", steps)
        adding = [one for one in strategies if one.adds_samples]
        _at_most_one("adds samples", adding)
        if any(one.own_rates for one in strategies):
            _at_most_one(
                "sets rates", [one for one in strategies if one.own_rates or one.sets_rate]
            )
        self._steps = steps[0].step if steps else super().step
        others = [one for one in strategies if not one.adds_samples]
        self._inside_out = [*adding, *reversed(others)]

    def __repr__(self) -> str:
        return f"combine({', '.join(map(repr, self.strategies))})"

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        for one in sorted(self.strategies, key=lambda one: not one.wraps_model):
            model = one.start(model, stream, generator=generator)
        return model

    def adopt(self, model: nn.Module) -> None:
        for one in self.strategies:
            one.adopt(model)

    def extend(self, stream: Stream) -> None:
        for one in self.strategies:
            one.extend(stream)

    def start_task(
        self, model: nn.Module, task: StoredTask, optimiser: Optimizer, updates: int
    ) -> nn.Module | None:
        given = model
        for one in self.strategies:
            model = one.start_task(model, task, optimiser, updates) or model
        return None if model is given else model

    def loss(self, model: nn.Module, batch: Batch, base: Loss = cross_entropy) -> Tensor:
        for one in self._inside_out:
            base = partial(one.loss, base=base)
        return base(model, batch)

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        for one in self.strategies:
            one.observe(batch, base)

    def after_backward(self, model: nn.Module) -> None:
        for one in self.strategies:
            one.after_backward(model)

    def step(self, model: nn.Module, optimiser: Optimizer) -> None:
        self._steps(model, optimiser)

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        for one in self.strategies:
            one.end_task(model, task)

    def state_dict(self) -> dict[str, Any]:
        return {str(place): one.state_dict() for place, one in enumerate(self.strategies)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for place, one in enumerate(self.strategies):
            one.load_state_dict(state[str(place)])


def _at_most_one(what: str, strategies: Sequence[Strategy]) -> None:
    if len(strategies) > 1:
        names = " and ".join(type(one).__name__ for one in strategies)
        raise InputError(
            f"expected at most one strategy that {what}, but got {names}. Leave one of them out."
        )
