"""A learned rule as a torch.optim.Optimizer."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch._compile import _disable_dynamo  # torch.compiler's imports the compiler at once
from torch.optim import Optimizer

from attractor.errors import InputError
from attractor.optimisers.blocks import advance
from attractor.optimisers.gather import gathered, scattered
from attractor.optimisers.given import (
    DEFAULTS,
    check_context,
    check_gradients,
    check_numbers,
    check_options,
    gradient,
    group_of,
)
from attractor.optimisers.identity import expect_same, identity
from attractor.optimisers.rule import Rule, other_size
from attractor.optimisers.state import State, longer
from attractor.optimisers.sweep import sweep
from attractor.optimisers.view import View, count, flatten, tables
from attractor.optimisers.watch import Watch

AWAY = "away"
"""Where a parameter is trained, in its state while the network is at its average."""


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
            gradient. `Anytime` and `Pacer` take it as ``torch.optim.AdamW`` does, in the place of
            the decay that they have learnt, which None leaves as it is, in a group too.
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
        weight_decay: float | None = None,
        maximize: bool = False,
        **others: Any,
    ) -> None:
        decay = rule.decay if weight_decay is None else weight_decay
        given = {"lr": lr, "weight_decay": decay, "maximize": maximize}
        check_options(others)
        check_numbers(given)
        if next(rule.parameters(), None) is None:  # they say in which type and where to compute
            raise InputError(
                f"expected the rule {type(rule).__name__} to have weights of its own, but it has "
                "none. Give it an nn.Parameter, such as its rate."
            )
        self.rule = rule
        self._seen: Tensor | None = None
        super().__init__(params, DEFAULTS | given | {"rule": rule.key})
        if rule.size is not None and count(self._params()) < rule.size:
            raise other_size(rule, count(self._params()))

    def __getstate__(self) -> dict[str, Any]:
        # torch copies and pickles what it knows of
        return super().__getstate__() | {"rule": self.rule, "_seen": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # those of older releases have less
            for name, value in (DEFAULTS | {"weight_decay": self.rule.decay}).items():
                group.setdefault(name, value)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which start with a state of their own."""
        if isinstance(param_group, Mapping):
            param_group = group_of(param_group, self.rule.decay)
        super().add_param_group(param_group)
        try:
            check_numbers(self.param_groups[-1])
            self._number_tables(self.param_groups[-1])
            for parameter in self.param_groups[-1]["params"]:
                self._check_parameter(parameter)
            if self.rule.size is not None and count(self._params()) > self.rule.size:
                raise other_size(self.rule, count(self._params()))
        except InputError:
            self.param_groups.pop()
            raise

    @_disable_dynamo  # type: ignore[untyped-decorator, unused-ignore]
    def eval(self) -> None:
        """Put the network where it is to be judged: at its average, if the rule keeps one.

        `train` puts it back, bit for bit; between the two there is no `step`.
        """
        if not self.training:
            return
        for params, view in self._pieces(None, everyone=True):
            for parameter in params if self.rule.averages else ():
                if kept := self.state[parameter]:
                    values = flatten([parameter]).to(next(self.rule.parameters()).dtype)
                    with torch.no_grad():
                        state = self._example.filled(kept)
                        there = self.rule.settled(values, state, view)
                        kept[AWAY] = parameter.clone()
                        parameter.copy_(there.view_as(parameter))

    @_disable_dynamo  # type: ignore[untyped-decorator, unused-ignore]
    def train(self) -> None:
        """Put the network back where it is trained, after `eval`."""
        for parameter, kept in self.state.items():
            if AWAY in kept:
                with torch.no_grad():
                    parameter.copy_(kept.pop(AWAY))

    @property
    def training(self) -> bool:
        """Whether the network is where it is trained, and not at its average."""
        return not any(AWAY in kept for kept in self.state.values())

    def mark_tables(self, model: nn.Module) -> None:
        """Count the embeddings of a model as tables of vectors; `attach` does it."""
        every = list(model.parameters())
        found = {every[i] for i in tables(model)}
        for group in self.param_groups:
            more = [i for i, p in enumerate(group["params"]) if p in found]
            group["tables"] = sorted({*group["tables"], *more})

    def watch(self, model: nn.Module) -> Watch:
        """Keep the input of each training pass of a model, as context for the next step.

        Each step needs a pass of its own before it, and of several passes sees the last. What is
        returned has a method ``remove``, which ends it; a copy of the model is not watched.
        `attach` does it for a rule that needs it.
        """
        return Watch(self, model)

    @_disable_dynamo  # type: ignore[untyped-decorator, unused-ignore]
    @torch.no_grad()
    def step(
        self, closure: Callable[[], Any] | None = None, *, context: Tensor | None = None
    ) -> Any:
        """One update of all parameters that have a gradient.

        Args:
            closure: computes the loss anew, and its gradients; a rule that `needs_loss` heeds what
                it returns, as in ``step(lambda: loss)``.
            context: what the model was shown, for a rule that wants to see it.

        Shape:
            context ``(batch, ...)``.
        """
        if not self.training:
            raise InputError(
                "expected the network where it is trained, but eval() put it at its average; "
                "nothing was changed. Call train() first."
            )
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if sweep(self):
            return loss
        shown = self._seen if context is None else context
        if shown is not None:
            check_context(shown)
        pieces = list(self._pieces(None if shown is None else shown[None]))
        weight = next(self.rule.parameters())
        for params, _ in pieces:  # all are checked before any is changed
            check_gradients(params, weight.dtype)
            for parameter in () if self.rule.whole else params:
                self._check_state(parameter, self.state[parameter])
        for group in self.param_groups:
            check_numbers(group)
        groups = {p: group for group in self.param_groups for p in group["params"]}
        told = self._told(loss)
        for params, view in pieces:
            self._update(params, view._replace(loss=told), groups)
        self._seen = None
        return loss

    def _told(self, loss: Any) -> Tensor | None:
        """What a closure returned, for a rule that heeds it."""
        if loss is None or not self.rule.needs_loss:
            return None
        weight = next(self.rule.parameters())
        return torch.as_tensor(loss).detach().to(weight).reshape(1)

    def state_dict(self) -> dict[str, Any]:
        """As any optimiser's, with a fingerprint of the rule's weights in its groups."""
        saved = super().state_dict()
        for group in saved["param_groups"]:
            group |= identity(self.rule)
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
        params = self._params()
        ids = [i for group in groups for i in group["params"]]
        loaded = [self._by_name(state_dict["state"].get(i, {})) for i in ids]
        for parameter, kept in zip(params, loaded, strict=False):  # torch counts them itself
            self._check_state(parameter, kept)
        expect_same(self.rule, groups)
        state = {i: kept for i, kept in zip(ids, loaded, strict=True) if kept}
        super().load_state_dict({**state_dict, "param_groups": groups, "state": state})
        for parameter, kept in zip(params, loaded, strict=True):
            # torch gives a state its parameter's type, which may be a lower one than the rule's
            for name, value in kept.items():
                self.state[parameter][name] = value.to(parameter.device, copy=True)

    def _pieces(
        self, context: Tensor | None, *, everyone: bool = False
    ) -> Iterator[tuple[list[Tensor], View]]:
        """What is updated together: a parameter at a time, or all of them for a rule that is whole
        or sees whole tensors; those of a group, if it heeds the group's rate itself.

        Those without a gradient are left out, unless everyone is asked for.
        """
        params = self._params()
        if self.rule.tensorwise and not everyone:
            tables = {params[place] for place in self._tables()}
            apart = [group["params"] for group in self.param_groups]
            for together in apart if self.rule.averages else [params]:
                some = [p for p in together if p.grad is not None and p.numel()]
                if some:
                    yield some, View.of(some, (i for i, p in enumerate(some) if p in tables))
            return
        view = View.of(params, self._tables())._replace(context=context)
        if self.rule.whole:
            if any(p.grad is not None for p in params):
                yield params, view
            return
        first = 0
        for parameter in params:
            after = first + parameter.numel()
            if everyone or parameter.grad is not None:
                yield [parameter], view.at(slice(first, after))
            first = after

    def _update(
        self, params: list[Tensor], view: View, groups: Mapping[Tensor, dict[str, Any]]
    ) -> None:
        weight, averages = next(self.rule.parameters()), self.rule.averages
        values = flatten(params).to(weight.dtype)
        decays = {p: float(groups[p]["weight_decay"]) for p in params}
        grads = flatten(
            gradient(p, groups[p], weight.dtype, 0.0 if averages else decays[p]) for p in params
        )
        if averages:
            rate = float(groups[params[0]]["lr"])
            view = view._replace(rate=rate, decay=decays[params[0]])
        states = self._states(params, values, view)
        together = gathered(states)
        steps = advance(self.rule, grads, together, values, view)
        scattered(together, states)
        start = 0
        for parameter in params:
            at = slice(start, start + parameter.numel())
            start = at.stop
            if parameter.grad is None:
                continue
            step = steps[0, at].view_as(parameter)
            rate = 1.0 if averages else float(groups[parameter]["lr"])
            parameter.add_(step.to(parameter.dtype), alpha=rate)
            if self.rule.prunes:
                parameter.masked_fill_(step == -values[0, at].view_as(parameter), 0)

    @cached_property
    def _example(self) -> State:
        """The state of a single coordinate, which has the structure of any."""
        one = next(self.rule.parameters()).new_zeros(1, 1)
        return self.rule.init(one, View.of(one))

    def started(self, parameter: Tensor) -> dict[str, Tensor]:
        """The state of a parameter by itself, which is made if there is none yet."""
        kept: dict[str, Tensor] = self.state[parameter]
        if not kept:
            values = flatten([parameter]).to(next(self.rule.parameters()).dtype)
            self._state(parameter, values, View.of([parameter]))
        return kept

    def _states(self, params: list[Tensor], values: Tensor, view: View) -> list[State]:
        """Those of parameters that are updated together: of each if it has one of its own."""
        if self.rule.tensorwise:
            return [self._example.filled(self.started(p)) for p in params]
        return [self._state(params[0], values, view)]

    def _state(self, parameter: Tensor, values: Tensor, view: View) -> State:
        """A parameter's state: its tensors are kept by name, so that torch can save them."""
        kept: dict[str, Tensor] = self.state[parameter]
        if not kept or (self.rule.whole and self._fewer(kept, values)):
            kept.update(longer(kept, self.rule.init(values, view).map(torch.clone).named()))
        return self._example.filled(kept)

    def _fewer(self, kept: dict[str, Tensor], values: Tensor) -> bool:
        """Whether a state is of fewer coordinates than there are, because some came later."""
        each = State(self._example.each).named()
        return any(kept[name].shape[1] < values.shape[1] for name in each)

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
        if self.rule.whole and kept:
            params = self._params()
            values = next(self.rule.parameters()).new_zeros(1, count(params))
            started = self.rule.init(values, View.of(params)).named()
            expected = {name: tuple(s.shape) for name, s in started.items()}
        found = {name: tuple(value.shape) for name, value in kept.items() if name != AWAY}
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

    def _number_tables(self, group: dict[str, Any]) -> None:
        """Say of a group's tables at which places they are; True is all of them."""
        given, count = group["tables"], len(group["params"])
        places = list(range(count)) if given is True else [] if given is False else list(given)
        if not all(isinstance(place, int) and 0 <= place < count for place in places):
            raise InputError(
                f"expected tables to be True, or places of a group's {count} parameters, but got "
                f"{given!r}. Try a group of its own for them, with tables=True."
            )
        group["tables"] = places

    def _tables(self) -> list[int]:
        """Which of all parameters are tables of vectors and no matrices."""
        found, first = [], 0
        for group in self.param_groups:
            found += [first + place for place in group["tables"]]
            first += len(group["params"])
        return found

    def _params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]
