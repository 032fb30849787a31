"""A learned rule as a torch.optim.Optimizer."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from attractor.errors import InputError
from attractor.optimisers.blocks import advance
from attractor.optimisers.rule import Rule, other_size
from attractor.optimisers.state import State
from attractor.optimisers.view import View, count, flatten
from attractor.optimisers.watch import Watch

DEFAULTS = {"lr": 1.0, "weight_decay": 0.0, "maximize": False, "momentum": 0.0}
"""Of a parameter group; the momentum is there for schedulers that cycle one, and does nothing."""
GIVEN = {"params", "lr", "weight_decay", "maximize", "initial_lr", "name", "param_names"}
"""What a user's parameter group may say."""


class Learned(Optimizer):
    """A learned rule in the place of Adam; what ``rule(model.parameters())`` returns.

    It has param groups, closures, schedulers, ``state_dict`` and states for each parameter, like
    any optimiser of torch. A parameter without a gradient is left alone. A rule has a memory of
    its own, so what a scheduler such as ``OneCycleLR`` does to a momentum is of no effect.

    Args:
        params: parameters or parameter groups.
        rule: the learned rule; its weights are used, and not changed.
        lr: multiplies every step; 1 is what the rule was trained with. What a rule that prunes
            sets to zero is zero at any lr.
        weight_decay: as in ``torch.optim.Adam``: this share of a parameter is added to its
            gradient.
        maximize: go up the gradient.
        others: of torch's options, such as ``foreach``: refused unless None or False.

    Example:
        >>> from attractor.optimisers import LSTMOptimiser
        >>> model = nn.Linear(3, 1)
        >>> optimiser = LSTMOptimiser()(model.parameters())
        >>> schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=10)
        >>> model(torch.ones(2, 3)).sum().backward()
        >>> optimiser.step()
        >>> optimiser.zero_grad()
    """

    def __init__(
        self,
        params: Iterable[Any],
        rule: Rule,
        lr: float = 1.0,
        *,
        weight_decay: float = 0.0,
        maximize: bool = False,
        **others: Any,
    ) -> None:
        given = {"lr": lr, "weight_decay": weight_decay, "maximize": maximize}
        _check_options(others)
        _check_numbers(given)
        self.rule = rule
        self._seen: Tensor | None = None
        super().__init__(params, DEFAULTS | given | {"rule": rule.key})
        if rule.size is not None and self._count() < rule.size:
            raise self._other_size()

    def __getstate__(self) -> dict[str, Any]:
        # torch copies and pickles what it knows of
        return super().__getstate__() | {"rule": self.rule, "_seen": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # those of older releases have less
            for name, value in DEFAULTS.items():
                group.setdefault(name, value)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which start with a state of their own."""
        if isinstance(param_group, Mapping):
            _check_options(param_group)
        super().add_param_group(param_group)
        try:
            _check_numbers(self.param_groups[-1])
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
        `attach` does it for a rule that needs it.
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
        pieces = list(self._pieces(None if shown is None else shown[None]))
        weight = next(self.rule.parameters())
        for params, _ in pieces:  # all are checked before any is changed
            _check_gradients(params, weight.dtype)
        for group in self.param_groups:
            _check_numbers(group)
        groups = {p: group for group in self.param_groups for p in group["params"]}
        for params, view in pieces:
            self._update(params, view, groups)
        self._seen = None
        return loss

    def state_dict(self) -> dict[str, Any]:
        """As any optimiser's, with a fingerprint of the rule's weights in its groups."""
        saved = super().state_dict()
        for group in saved["param_groups"]:
            group["fingerprint"] = fingerprint(self.rule)
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where an optimiser with the same rule and parameters was."""
        found = {group.get("rule") for group in state_dict["param_groups"]}
        if found != {self.rule.key}:
            raise InputError(
                f"expected the state of an optimiser with the rule {self.rule.key!r}, but got one "
                f"of {', '.join(sorted(map(repr, found)))}. Load it with the rule that saved it."
            )
        groups = [dict(group) for group in state_dict["param_groups"]]
        params = [p for group in self.param_groups for p in group["params"]]
        ids = [i for group in groups for i in group["params"]]
        loaded = [self._by_name(state_dict["state"].get(i, {})) for i in ids]
        for parameter, kept in zip(params, loaded, strict=False):  # torch counts them itself
            self._check_state(parameter, kept)
        prints = {group.pop("fingerprint", None) for group in groups}
        if not prints <= {None, fingerprint(self.rule)}:  # older releases have none
            raise InputError(
                f"expected the state of an optimiser whose rule {self.rule.key!r} has the weights "
                "of this one, but got one of other weights; nothing was changed. Load the rule "
                "that was in use, with pretrained() or load_rule, and make the optimiser with it."
            )
        state = {i: kept for i, kept in zip(ids, loaded, strict=True) if kept}
        super().load_state_dict({**state_dict, "param_groups": groups, "state": state})
        for parameter, kept in zip(params, loaded, strict=True):
            # torch gives a state its parameter's type, which may be a lower one than the rule's
            for name, value in kept.items():
                self.state[parameter][name] = value.to(parameter.device, copy=True)

    def _pieces(self, context: Tensor | None) -> Iterator[tuple[list[Tensor], View]]:
        """What is updated together: a parameter at a time, or all of them for a whole rule."""
        params = [p for group in self.param_groups for p in group["params"]]
        view = View.of(params)._replace(context=context)
        if self.rule.whole:
            if any(p.grad is not None for p in params):
                yield params, view
            return
        first = 0
        for parameter in params:
            after = first + parameter.numel()
            if parameter.grad is not None:
                yield [parameter], view.at(slice(first, after))
            first = after

    def _update(
        self, params: list[Tensor], view: View, groups: Mapping[Tensor, dict[str, Any]]
    ) -> None:
        weight = next(self.rule.parameters())
        values = flatten(params).to(weight.dtype)
        grads = flatten(_gradient(p, groups[p], weight.dtype) for p in params)
        steps = advance(self.rule, grads, self._state(params[0], values, view), values, view)
        start = 0
        for parameter in params:
            at = slice(start, start + parameter.numel())
            start = at.stop
            if parameter.grad is None:
                continue
            step = steps[0, at].view_as(parameter)
            parameter.add_(step.to(parameter.dtype), alpha=float(groups[parameter]["lr"]))
            if self.rule.prunes:
                parameter.masked_fill_(step == -values[0, at].view_as(parameter), 0)

    @cached_property
    def _example(self) -> State:
        """The state of a single coordinate, which has the structure of any."""
        one = next(self.rule.parameters()).new_zeros(1, 1)
        return self.rule.init(one, View.of(one))

    def _state(self, parameter: Tensor, values: Tensor, view: View) -> State:
        """A parameter's state: its tensors are kept by name, so that torch can save them."""
        kept = self.state[parameter]
        if not kept:
            kept.update(self.rule.init(values, view).map(torch.clone).named())
        return self._example.filled(kept)

    def _by_name(self, kept: dict[str, Tensor]) -> dict[str, Tensor]:
        """A parameter's saved state; older releases numbered its tensors."""
        names = self._example.named()
        if len(kept) == len(names) and all(name.isdecimal() for name in kept):
            return {name: kept[str(i)] for i, name in enumerate(names)}
        return dict(kept)

    def _check_state(self, parameter: Tensor, kept: dict[str, Tensor]) -> None:
        each, shared = (State(part).named() for part in self._example)
        expected = {name: (1, parameter.numel(), *s.shape[2:]) for name, s in each.items()}
        expected |= {name: tuple(s.shape) for name, s in shared.items()}
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


def fingerprint(rule: Rule) -> str:
    """A few letters that other weights of a rule would not have.

    Example:
        >>> from attractor.optimisers import DMSGD
        >>> fingerprint(DMSGD(rate=0.1)) == fingerprint(DMSGD(rate=0.2))
        False
    """
    digest = hashlib.sha256()
    for name, value in rule.state_dict().items():
        numbers = value.detach().cpu().contiguous().flatten().view(torch.uint8)
        digest.update(name.encode() + numbers.numpy().tobytes())
    return digest.hexdigest()[:16]


def _gradient(parameter: Tensor, group: dict[str, Any], dtype: torch.dtype) -> Tensor:
    """What the rule is told: the gradient to go down, in the rule's type."""
    if parameter.grad is None:
        return torch.zeros_like(parameter, dtype=dtype)
    gradient = parameter.grad.to(dtype)
    if group["maximize"]:
        gradient = -gradient
    decay = float(group["weight_decay"])
    return gradient.add(parameter.to(dtype), alpha=decay) if decay else gradient


def _check_options(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if name not in GIVEN and value is not None and value is not False:
            raise InputError(
                f"expected options of a learned optimiser (lr, weight_decay, maximize), but got "
                f"{name}={value!r}. Leave it out: a rule has a memory of its own and one way to "
                "be computed."
            )


def _check_numbers(group: Mapping[str, Any]) -> None:
    if not 0 <= float(group["lr"]) < math.inf:
        raise InputError(
            f"expected lr to be at least 0, but got {float(group['lr'])}. It is a finite number "
            "that multiplies what the rule says; try lr=1."
        )
    if not 0 <= float(group["weight_decay"]) < math.inf:
        raise InputError(
            f"expected weight_decay to be a finite number of at least 0, but got "
            f"{float(group['weight_decay'])}. Try weight_decay=0."
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
