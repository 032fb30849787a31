"""A learned rule as a torch.optim.Optimizer."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from attractor.errors import InputError
from attractor.optimisers.blocks import advance
from attractor.optimisers.rule import Rule, State, count, flatten, other_size
from attractor.optimisers.watch import Watch


class Learned(Optimizer):
    """A learned rule in the place of Adam; what ``rule(model.parameters())`` returns.

    It has param groups, closures, schedulers, ``state_dict`` and states for each parameter, like
    any optimiser of torch. A parameter without a gradient is left alone.

    Args:
        params: parameters or parameter groups.
        rule: the learned rule; its weights are used, and not changed.
        lr: multiplies every step; 1 is what the rule was trained with. What a rule that prunes
            sets to zero is zero at any lr.

    Example:
        >>> from attractor.optimisers import LSTMOptimiser
        >>> model = nn.Linear(3, 1)
        >>> optimiser = LSTMOptimiser()(model.parameters())
        >>> schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=10)
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()
        >>> optimiser.zero_grad()
    """

    def __init__(self, params: Iterable[Any], rule: Rule, *, lr: float = 1.0) -> None:
        _check_rate(lr)
        self.rule = rule
        self._seen: Tensor | None = None
        super().__init__(params, {"lr": lr, "rule": rule.key})
        if rule.size is not None and self._count() < rule.size:
            raise self._other_size()

    def __getstate__(self) -> dict[str, Any]:
        # torch copies and pickles what it knows of
        return super().__getstate__() | {"rule": self.rule, "_seen": None}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which start with a state of their own."""
        super().add_param_group(param_group)
        try:
            _check_rate(self.param_groups[-1]["lr"])
            for parameter in self.param_groups[-1]["params"]:
                self._check_parameter(parameter)
            if self.rule.size is not None and self._count() > self.rule.size:
                raise self._other_size()
        except InputError:
            self.param_groups.pop()
            raise

    def watch(self, model: nn.Module) -> Watch:
        """Keep the input of each training pass of a model, as context for the next step.

        Each step needs a pass of its own before it, and of several passes sees the last. What is
        returned has a method ``remove``, which ends it; a copy of the model is not watched.
        """
        return Watch(self, model)

    @torch.no_grad()
    def step(
        self, closure: Callable[[], Any] | None = None, *, context: Tensor | None = None
    ) -> Any:
        """One update of all parameters that have a gradient.

        Args:
            closure: computes the loss anew, and its gradients.
            context: what the model was shown, for a rule that wants to see it.

        Shape:
            context ``(batch, ...)``.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        shown = self._seen if context is None else context
        if shown is not None:
            _check_context(shown)
        pieces = list(self._pieces())
        weight = next(self.rule.parameters())
        for _, params in pieces:  # all are checked before any is changed
            _check_gradients(params, weight.dtype)
        for group in self.param_groups:
            _check_rate(group["lr"])
        rates = {p: float(group["lr"]) for group in self.param_groups for p in group["params"]}
        for first, params in pieces:
            self._update(first, params, rates, None if shown is None else shown[None])
        self._seen = None
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where an optimiser with the same rule and parameters was."""
        found = {group.get("rule") for group in state_dict["param_groups"]}
        if found != {self.rule.key}:
            raise InputError(
                f"expected the state of an optimiser with the rule {self.rule.key!r}, but got one "
                f"of {', '.join(sorted(map(repr, found)))}. Load it with the rule that saved it."
            )
        params = [p for group in self.param_groups for p in group["params"]]
        ids = [i for group in state_dict["param_groups"] for i in group["params"]]
        loaded = [state_dict["state"].get(i, {}) for i in ids]
        for parameter, kept in zip(params, loaded, strict=False):  # torch counts them itself
            self._check_state(parameter, kept)
        super().load_state_dict(state_dict)
        for parameter, kept in zip(params, loaded, strict=True):
            # torch gives a state its parameter's type, which may be a lower one than the rule's
            for name, value in kept.items():
                self.state[parameter][name] = value.to(parameter.device, copy=True)

    def _pieces(self) -> Iterator[tuple[int, list[Tensor]]]:
        """What is updated together, and the number of its first coordinate.

        That is a parameter at a time, or all of them for a whole rule.
        """
        params = [p for group in self.param_groups for p in group["params"]]
        if self.rule.whole:
            if any(p.grad is not None for p in params):
                yield 0, params
            return
        first = 0
        for parameter in params:
            if parameter.grad is not None:
                yield first, [parameter]
            first += parameter.numel()

    def _update(
        self,
        first: int,
        params: list[Tensor],
        rates: dict[Tensor, float],
        context: Tensor | None,
    ) -> None:
        weight = next(iter(self.rule.parameters()))
        values = flatten(params).to(weight.dtype)
        grads = flatten(torch.zeros_like(p) if p.grad is None else p.grad for p in params)
        state = self._state(params[0], values)
        steps = advance(
            self.rule, grads.to(weight.dtype), state, values, context=context, first=first
        )
        start = 0
        for parameter in params:
            at = slice(start, start + parameter.numel())
            start = at.stop
            if parameter.grad is None:
                continue
            step = steps[0, at].view_as(parameter)
            parameter.add_(step.to(parameter.dtype), alpha=rates[parameter])
            if self.rule.prunes:
                parameter.masked_fill_(step == -values[0, at].view_as(parameter), 0)

    @cached_property
    def _example(self) -> State:
        """The state of a single coordinate, which has the structure of any."""
        weight = next(iter(self.rule.parameters()))
        return self.rule.init(weight.new_zeros(1, 1))

    @cached_property
    def _structure(self) -> pytree.TreeSpec:
        return pytree.tree_structure(self._example)

    def _state(self, parameter: Tensor, values: Tensor) -> State:
        """A parameter's state: its tensors are kept by number, so that torch can save them."""
        kept = self.state[parameter]
        if len(kept) < self._structure.num_leaves:
            started = self.rule.init(values).map(torch.clone)
            kept.update({str(i): leaf for i, leaf in enumerate(pytree.tree_leaves(started))})
        leaves = [kept[str(i)] for i in range(len(kept))]
        return pytree.tree_unflatten(leaves, self._structure)  # type: ignore[no-any-return]

    def _check_state(self, parameter: Tensor, kept: dict[str, Tensor]) -> None:
        each = [
            (1, parameter.numel(), *s.shape[2:]) for s in pytree.tree_leaves(self._example.each)
        ]
        shared = [tuple(s.shape) for s in pytree.tree_leaves(self._example.shared)]
        expected = {str(i): shape for i, shape in enumerate(each + shared)}
        found = {name: tuple(value.shape) for name, value in kept.items()}
        if kept and found != expected:
            raise InputError(
                f"expected a state of shapes {list(expected.values())} for a parameter of shape "
                f"{tuple(parameter.shape)}, but got {list(found.values())}; nothing was changed. "
                "Load it with the rule and the network that saved it."
            )

    def _check_parameter(self, parameter: Tensor) -> None:
        place = next(iter(self.rule.parameters())).device
        if not parameter.is_floating_point():
            raise InputError(
                f"expected parameters of real numbers, but got {parameter.dtype}. "
                "Train them with an optimiser of their own."
            )
        if parameter.device != place:
            raise InputError(
                f"expected parameters on {place}, where the rule's weights are, but got one on "
                f"{parameter.device}. Try rule.to({str(parameter.device)!r}) first, and one "
                "optimiser for each device."
            )

    def _count(self) -> int:
        return count(p for group in self.param_groups for p in group["params"])

    def _other_size(self) -> InputError:
        return other_size(self.rule, self._count())


def _check_rate(lr: Any) -> None:
    if not 0 <= float(lr) < math.inf:
        raise InputError(
            f"expected lr to be at least 0, but got {float(lr)}. It is a finite number that "
            "multiplies what the rule says; try lr=1."
        )


def _check_context(shown: Any) -> None:
    if not isinstance(shown, Tensor) or not shown.dim():
        raise InputError(
            f"expected the context to be a tensor (batch, ...), but got {type(shown).__name__}; "
            "nothing was changed. Try context=torch.as_tensor(x)."
        )
    if not shown.isfinite().all():
        raise InputError(
            "expected a context of finite numbers, but got others among them; nothing was "
            "changed. Skip this batch."
        )


def _check_gradients(params: list[Tensor], dtype: torch.dtype) -> None:
    for parameter in params:
        gradient = parameter.grad
        if gradient is None:
            continue
        if gradient.layout != torch.strided:
            raise InputError(
                "expected dense gradients, but got a sparse one. Try nn.Embedding(..., "
                "sparse=False)."
            )
        if not gradient.isfinite().all():
            raise InputError(
                f"expected finite gradients, but that of a parameter of shape "
                f"{tuple(parameter.shape)} is not; nothing was changed. Skip this batch; "
                "torch.autograd.detect_anomaly() finds what made it."
            )
        if gradient.dtype != dtype and not gradient.to(dtype).isfinite().all():
            raise InputError(
                f"expected gradients that fit the rule's type, {dtype}, but that of a parameter of "
                f"shape {tuple(parameter.shape)} is up to {gradient.abs().max():.2g}; nothing was "
                f"changed. Skip this batch, or try rule.to({gradient.dtype})."
            )
