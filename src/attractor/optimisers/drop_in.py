"""A learned rule as a torch.optim.Optimizer."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils import _pytree as pytree

from attractor.errors import InputError
from attractor.optimisers.blocks import advance
from attractor.optimisers.rule import Rule, State, count, flatten


class Learned(Optimizer):
    """A learned rule in the place of Adam; what ``rule(model.parameters())`` returns.

    It has param groups, closures, schedulers, ``state_dict`` and states for each parameter, like
    any optimiser of torch. A parameter without a gradient is left alone.

    Args:
        params: parameters or parameter groups.
        rule: the learned rule; its weights are used, and not changed.
        lr: multiplies every step; 1 is what the rule was trained with.

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
        if not lr >= 0:
            raise InputError(
                f"expected lr to be at least 0, but got {lr}. It multiplies what the rule says; "
                "try lr=1."
            )
        self.rule = rule
        self._seen: Tensor | None = None
        super().__init__(params, {"lr": lr, "rule": rule.key})
        self._check_size()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which start with a state of their own."""
        super().add_param_group(param_group)
        place = next(iter(self.rule.parameters()))
        for parameter in self.param_groups[-1]["params"]:
            if parameter.is_complex() or not parameter.is_floating_point():
                raise InputError(
                    f"expected parameters of real numbers, but got {parameter.dtype}. "
                    "Train them with an optimiser of their own."
                )
            if parameter.device != place.device:
                raise InputError(
                    f"expected parameters on {place.device}, where the rule's weights are, but got "
                    f"one on {parameter.device}. Try rule.to({str(parameter.device)!r}) first, and "
                    "one optimiser for each device."
                )

    def watch(self, model: nn.Module) -> None:
        """Keep the input of each training pass of a model, as context for the next step."""

        def keep(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            if module.training and inputs and isinstance(inputs[0], Tensor):
                self._seen = inputs[0].detach()

        model.register_forward_pre_hook(keep)

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
        pieces = list(self._pieces())
        for _, _, params in pieces:  # all are checked before any is changed
            _check_gradients(params)
        for lr, where, params in pieces:
            self._update(lr, where, params, None if shown is None else shown[None])
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where an optimiser with the same rule and parameters was."""
        found = {group.get("rule") for group in state_dict["param_groups"]}
        if found != {self.rule.key}:
            raise InputError(
                f"expected the state of an optimiser with the rule {self.rule.key!r}, but got one "
                f"of {', '.join(sorted(map(repr, found)))}. Load it with the rule that saved it."
            )
        super().load_state_dict(state_dict)
        params = [p for group in self.param_groups for p in group["params"]]
        ids = [i for group in state_dict["param_groups"] for i in group["params"]]
        for parameter, i in zip(params, ids, strict=True):
            # torch gives a state its parameter's type, which may be a lower one than the rule's
            for name, value in state_dict["state"].get(i, {}).items():
                self.state[parameter][name] = value.to(parameter.device, copy=True)

    def _pieces(self) -> Iterator[tuple[float, slice, list[Tensor]]]:
        """What is updated together: a parameter at a time, or all of them for a whole rule."""
        if self.rule.whole:
            self._check_size()
            yield (
                self.param_groups[0]["lr"],
                slice(None),
                [p for group in self.param_groups for p in group["params"]],
            )
            return
        start = 0
        for group in self.param_groups:
            for parameter in group["params"]:
                stop = start + parameter.numel()
                if parameter.grad is not None:
                    yield group["lr"], slice(start, stop), [parameter]
                start = stop
        self._check_size()

    def _update(
        self, lr: float, where: slice, params: list[Tensor], context: Tensor | None
    ) -> None:
        weight = next(iter(self.rule.parameters()))
        values = flatten(params).to(weight.dtype)
        grads = flatten(torch.zeros_like(p) if p.grad is None else p.grad for p in params)
        grads = grads.to(weight.dtype)
        state = self._state(params[0], values)
        steps = advance(self.rule, grads, state, values, context=context, first=where.start or 0)
        sizes = [p.numel() for p in params]
        for parameter, step in zip(params, torch.split(steps[0], sizes), strict=True):
            parameter.add_(step.view_as(parameter).to(parameter.dtype), alpha=lr)

    def _state(self, parameter: Tensor, values: Tensor) -> State:
        """A parameter's state: its tensors are kept by number, so that torch can save them."""
        kept = self.state[parameter]
        if not kept:
            started = pytree.tree_map(torch.clone, self.rule.init(values))
            kept.update({str(i): leaf for i, leaf in enumerate(pytree.tree_leaves(started))})
        _, spec = pytree.tree_flatten(self.rule.init(values[:, :1]))
        return pytree.tree_unflatten([kept[str(i)] for i in range(len(kept))], spec)  # type: ignore[no-any-return]

    def _check_size(self) -> None:
        size = self.rule.size
        given = count(p for group in self.param_groups for p in group["params"])
        if size is not None and given != size:
            raise InputError(
                f"{type(self.rule).__name__} expects the network of {size} parameters that it was "
                f"made for, but got {given}. Make one with size={given} and meta-train it, or use "
                "a rule that goes on any network, such as LSTMOptimiser."
            )


def _check_gradients(params: list[Tensor]) -> None:
    for parameter in params:
        gradient = parameter.grad
        if gradient is None:
            continue
        if gradient.is_sparse:
            raise InputError(
                "expected dense gradients, but got a sparse one. Try nn.Embedding(..., "
                "sparse=False)."
            )
        if not gradient.isfinite().all():
            raise InputError(
                f"expected finite gradients, but that of a parameter of shape "
                f"{tuple(parameter.shape)} is not; nothing was changed. Skip this batch, or clip "
                "the gradients."
            )
