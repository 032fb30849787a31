"""A network on its way through levels, which grows when it cannot go on."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, nn

from attractor.cells.base import penalised
from attractor.checks import number, positive, whole
from attractor.continual.draws import Draws
from attractor.continual.fitting import check_limits
from attractor.continual.growing import Growth, as_saved, grown
from attractor.continual.identity import expect_same, identity
from attractor.continual.lifelong.measures import LifelongResult
from attractor.continual.lifelong.triggers import Trigger
from attractor.continual.strategies.base import Strategy
from attractor.continual.strategies.choose import strategy_of
from attractor.errors import InputError
from attractor.optimisers import Maker, attach, choose
from attractor.state import cloned
from attractor.tasks import Batch, StoredTask
from attractor.tasks.streams import Stream
from attractor.training.evaluate import evaluate
from attractor.training.process import Diverged, Row


@dataclass(frozen=True)
class Rules:
    r"""When a level is passed, and what happens when it is not.

    Args:
        steps: m, batches of a level, none of which is shown twice.
        window: k, the last batches of a level whose mean accuracy decides.
        threshold: c, what it has to be at least.
        batch_size: sequences in a batch.
        grow_to: units after a first failure; ``None`` means that a failure is the end.
        after: batches of the same level after a growth.
        growths: how often it may grow; each time but the first to twice as many units.
        noise: on the copies, as for `attractor.continual.grow`.
        rate_after: by what the rate is multiplied after a growth.
        clip_value: cut each entry of the gradient off at this size, after the strategy.
        held_out: sequences of each level on which it is tested after each level.

    Example:
        >>> Rules().threshold, Rules(grow_to=256).after
        (0.8, 20000)

    References:
        Chandar (2020), sections 5.3.4 and 5.4.4.
    """

    steps: int = 10_000
    window: int = 100
    threshold: float = 0.8
    batch_size: int = 10
    grow_to: int | None = None
    after: int = 20_000
    growths: int = 1
    noise: float = 1.0
    rate_after: float = 1.0
    clip_value: float | None = 10.0
    held_out: int = 100

    def __post_init__(self) -> None:
        for name in ("steps", "window", "batch_size", "after", "growths", "held_out"):
            whole(name, getattr(self, name), 1)
        if self.grow_to is not None:
            whole("grow_to", self.grow_to, 1)
        number("threshold", self.threshold, 0, 1)
        number("noise", self.noise, 0)
        positive("rate_after", self.rate_after)
        if min(self.steps, self.after) < self.window:
            raise InputError(
                f"expected a window that fits into a level's {min(self.steps, self.after)} batches,"
                f" but got {self.window}. Try {min(self.steps, self.after)}."
            )


class Curriculum:
    r"""Levels one after the other, each passed before the next; after a failure the network grows.

    A level takes m batches; it is passed if the mean accuracy on the last k of them, each measured
    before it is learnt from, is at least c. After a first failure the network is made wider and
    goes on with the same level; after another one it stops. Whatever came of a level, the network
    is then tested on all levels, those to come too.

    Args:
        model: the network.
        levels: as `attractor.continual.lifelong.levels` makes them.
        strategy: any, as itself, by its key or as a table; ``None`` means to learn one level after
            the other. The thesis's is ``GEM(200, memory="ring")``, which has the last ten sequences
            of each of 20 levels.
        optimiser: as for `attractor.continual.Learner`.
        rules: when a level is passed.
        seed: decides the batches, the growth, all that the strategy draws, and dropout. On the CPU
            torch's default generator, from which dropout draws, is left as it was.
        trigger: lets the network grow before a level is failed (`attractor.continual.lifelong`);
            ``None`` means after a failure alone, as the chapter has it.
        log_every: updates between measurements of the loss.

    Example:
        >>> from attractor.continual.lifelong import Level, Levels
        >>> from attractor.models import SequenceTagger
        >>> from attractor.tasks import CopyMemory
        >>> three = [Level(CopyMemory(lag), f"lag {lag}", lag - 1) for lag in (1, 2, 3)]
        >>> rules = Rules(steps=5, window=5, after=5, grow_to=12, held_out=10)
        >>> model = SequenceTagger("lstm", 10, 6, 9)
        >>> learner = Curriculum(model, Levels("lags", three), rules=rules)
        >>> while not learner.done:
        ...     rows = learner.advance()
        >>> learner.result().matrix.shape
        torch.Size([3, 3])

    Departs from the paper: the moments of the optimiser are carried over when the network grows;
    the paper does not say. It is tested on held-out sequences, always the same, instead of fresh
    ones.

    References:
        Sodhani et al. (2020), Toward training recurrent neural networks for lifelong learning,
        arXiv:1811.07017; Chandar (2020), chapter 5.
    """

    def __init__(
        self,
        model: nn.Module,
        levels: Stream,
        strategy: Strategy | str | Mapping[str, Any] | None = None,
        *,
        optimiser: Maker | str | Mapping[str, Any] = "adam",
        rules: Rules | None = None,
        seed: int = 0,
        trigger: Trigger | None = None,
        log_every: int = 100,
    ) -> None:
        self.levels, self.rules, self.trigger = levels, rules or Rules(), trigger
        if trigger is not None and self.rules.grow_to is None:
            raise InputError(
                f"expected a size to grow to beside the trigger {trigger!r}, but got none. Try "
                "Rules(grow_to=256)."
            )
        self.strategy = strategy_of(strategy)
        self.log_every = whole("log_every", log_every, 1)
        grows: Any = None if self.rules.grow_to is None else "wider"
        check_limits(self.strategy, model, optimiser, levels, grows=grows)
        self._batches, draws, self._growth = (_seeded(seed, n) for n in range(3))
        self._draws = Draws(_seeded(seed, 3).initial_seed())
        self.model = self.strategy.start(model, levels, generator=draws)
        self._make = optimiser
        self._attach(self.model)
        self.step = self.level = self.update = 0
        self.growths: list[int] = []
        self.sizes: list[int] = []
        self.given: list[int] = []
        self.completed, self.done, self.grew = 0, False, False
        self.recent: list[float] = []
        self.current: list[float] = []
        self.parameters: list[int] = []
        self.seconds = [0.0] * len(levels)
        self.matrix = torch.full((len(levels), len(levels)), torch.nan, dtype=torch.float64)
        self._begun = False

    @property
    def until(self) -> int:
        """How many batches the present try of the level takes."""
        return self.rules.after if self.grew else self.rules.steps

    def advance(self) -> list[Row]:
        """Learn one batch, and what comes at the end of a level; what was measured."""
        if self.done:
            raise InputError(
                "expected levels to learn, but the learner has stopped. Ask `done` before each "
                "step."
            )
        with self._draws():
            return self._advance()

    def _advance(self) -> list[Row]:
        began = time.process_time()
        level = self.levels[self.level]
        if not self._begun:
            self._begin(level)
        batch = level.samples(torch.arange(self.rules.batch_size), self._batches)
        batch = batch.to(next(self.model.parameters()).device)
        if self.update >= self.until - self.rules.window:
            self.recent.append(self._accuracy(batch))
        loss = self._learn(batch)
        self.step, self.update = self.step + 1, self.update + 1
        if not math.isfinite(loss):
            raise Diverged(
                f"the loss became {loss} at update {self.step} of all, in {level.name}",
                "Try a smaller rate of the optimiser, or another seed.",
            )
        self.seconds[self.level] += time.process_time() - began
        rows: list[Row] = []
        if self.step % self.log_every == 0:
            rows.append({"split": "train", "loss": loss, "level": self.level + 1})
        if self.update == self.until:
            rows.append(self._judge())
        elif self._full(batch, loss) and (now := self._accuracy(batch)) < self.rules.threshold:
            rows.append(self._grow(now))
        return rows

    def _begin(self, level: StoredTask) -> None:
        """Begin a level; if the strategy gives another model, the optimiser begins anew."""
        model = self.strategy.start_task(self.model, level, self.optimiser, self.until)
        if model is not None and model is not self.model:
            check_limits(self.strategy, self.model, grows="wider")
            self._adopt(model)
            self.given.append(self.level)
        self._begun = True

    def _full(self, batch: Batch, loss: float) -> bool:
        """Whether the trigger says that it is time to grow."""
        watched = self._may_grow and self.trigger is not None
        return watched and self.trigger.look(self, batch, loss)  # type: ignore[union-attr]

    @property
    def _may_grow(self) -> bool:
        return self.rules.grow_to is not None and len(self.growths) < self.rules.growths

    def _grow(self, found: float) -> Row:
        """Go on with a wider network and the same level; what was measured before."""
        place = self.level
        row: Row = {"split": "test", "level": place + 1, "current_accuracy": found}
        row |= {"passed": 0.0, "parameters": self._size()}
        self.update, self.recent, self.grew = 0, [], True
        self.growths.append(place)
        self._widen()
        if self.trigger is not None:
            self.trigger.start()
        return row

    def _accuracy(self, batch: Batch) -> float:
        self.model.eval()
        with torch.no_grad():
            right, asked = self.levels[self.level].measure(self.model, batch)["accuracy"]
        self.model.train()
        return right / asked

    def _learn(self, batch: Batch) -> float:
        base = self.levels[0].loss  # which is that of all levels
        for parameter in self._parameters:
            parameter.grad = None
        loss = penalised(self.strategy.loss(self.model, batch, base), self.model)
        torch.autograd.backward(loss)
        self.strategy.observe(batch, base)
        self.strategy.after_backward(self.model)
        if self.rules.clip_value is not None:
            nn.utils.clip_grad_value_(self._parameters, self.rules.clip_value)
        self.strategy.step(self.model, self.optimiser)
        return loss.item()

    def _judge(self) -> Row:
        """Say whether the level is passed: go on, grow, or stop."""
        place, found = self.level, sum(self.recent) / len(self.recent)
        passed = found >= self.rules.threshold
        if not passed and self._may_grow:
            return self._grow(found)
        row: Row = {"split": "test", "level": place + 1, "current_accuracy": found}
        row |= {"passed": float(passed), "parameters": self._size()}
        self.update, self.recent = 0, []
        self.strategy.end_task(self.model, self.levels[place])
        self.matrix[place] = torch.tensor(
            [
                evaluate(self.model, one, "test", self.rules.held_out, batches=1)["accuracy"]
                for one in self.levels
            ]
        )
        self.current.append(found)
        self.parameters.append(self._size())
        self.completed += passed
        self.level, self.grew, self._begun = place + 1, False, False
        if self.trigger is not None:
            self.trigger.start()
        self.done = not passed or self.level == len(self.levels)
        each = {f"task_{n + 1}": float(a) for n, a in enumerate(self.matrix[place])}
        means = {"previous_accuracy": self.matrix[place, :place].mean()}
        means |= {"future_accuracy": self.matrix[place, place + 1 :].mean()}
        told = {name: float(one) for name, one in means.items() if not one.isnan()}
        return row | told | each

    def _size(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    def _widen(self) -> None:
        """Go on with a wider network: the same answers, the same moments, the same memory."""
        assert self.rules.grow_to is not None
        size = self.rules.grow_to * 2 ** len(self.sizes)
        self.sizes.append(size)
        before, optimiser = self.model, self.optimiser
        growth: Growth = grown(before, size, noise=self.rules.noise, generator=self._growth)
        self._adopt(growth.model)
        growth.carry(before, optimiser, self.optimiser)
        for group in self.optimiser.param_groups:
            if "lr" in group:
                group["lr"] = group["lr"] * self.rules.rate_after

    def _adopt(self, model: nn.Module) -> None:
        self.strategy.adopt(model)
        self._attach(model)

    def _attach(self, model: nn.Module) -> None:
        make = self._make
        if not callable(make):
            make = choose(make, model, self.levels[0].first("test", 1).x)
        self.model, self._parameters = model.train(), list(model.parameters())
        self.optimiser = attach(make, model)

    def result(self) -> LifelongResult:
        """How far it came, and what it kept."""
        return LifelongResult(
            self.matrix.clone(),
            list(self.current),
            self.completed,
            list(self.growths),
            list(self.parameters),
        )

    def state_dict(self) -> dict[str, Any]:
        """All that changes, as tensors, plain values, and dictionaries and lists of them."""
        state = {
            "made": self._made(),
            **{name: getattr(self, name) for name in _PLAIN},
            "matrix": self.matrix,
            "trigger": [] if self.trigger is None else self.trigger.values,
            "batches": self._batches.get_state(),
            "growth": self._growth.get_state(),
            "random": self._draws.state,
            "model": dict(self.model.state_dict()),
            "optimiser": self.optimiser.state_dict(),
            "strategy": self.strategy.state_dict(),
        }
        copies: dict[str, Any] = cloned(state)
        return copies

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a learner with the same arguments was; it grows first, if that one had."""
        expect_same(self._made(), state.get("made", {}))
        state = {"given": [], "random": self._draws.state, **state}  # which older ones lack
        if state["sizes"] != self.sizes or state["given"] != self.given:
            self._adopt(as_saved(self.model, state["model"]))
        for name in _PLAIN:
            setattr(self, name, cloned(state[name]))
        self.matrix = state["matrix"].clone()
        if self.trigger is not None:
            self.trigger.values = list(state["trigger"])
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.strategy.load_state_dict(state["strategy"])
        self._batches.set_state(state["batches"])
        self._growth.set_state(state["growth"])
        self._draws.state = state["random"].clone()

    def _made(self) -> dict[str, Any]:
        return {
            "levels": f"{self.levels.name} ({self.levels.fingerprint()})",
            "strategy": identity(self.strategy),
            "optimiser": type(self.optimiser).__name__,
            "rules": str(self.rules) + (f", {self.trigger}" if self.trigger else ""),
        }


_PLAIN = (
    "step",
    "level",
    "update",
    "growths",
    "sizes",
    "given",
    "completed",
    "done",
    "grew",
    "recent",
    "current",
    "parameters",
    "seconds",
    "_begun",
)
"""What a learner keeps as plain values."""


def _seeded(seed: int, place: int) -> Generator:
    """One of several generators of a seed, which do not move each other."""
    draws = torch.Generator().manual_seed(seed)
    return torch.Generator().manual_seed(
        int(torch.randint(2**62, (place + 1,), generator=draws)[-1])
    )
