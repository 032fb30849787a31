"""The one loop of supervised training: batch after batch, measured now and then."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from attractor.cells.base import penalised
from attractor.checks import one_of, positive, whole
from attractor.errors import InputError, unknown
from attractor.measures import Measure
from attractor.optimisers import Learned
from attractor.state import Nested, cloned
from attractor.tasks import Batch, Objective, Split, Task
from attractor.training.averaging import Average
from attractor.training.carried import Carried, begin, seen_by
from attractor.training.clipping import cut_to_norm
from attractor.training.compatible import check_batch_size
from attractor.training.evaluate import averaged, evaluate
from attractor.training.finite import expect_finite
from attractor.training.labels import expect_asked, labels_told
from attractor.training.process import Diverged, Row
from attractor.training.schedules import Schedule, plain, scheduled
from attractor.training.sharing import add_up, all_leaves, own_leaves, shared


@dataclass(frozen=True)
class Plan:
    """How to train, whatever is trained.

    Args:
        steps: updates in all.
        batch_size: samples in a batch.
        accumulate: batches whose gradients are averaged for one update.
        clip: scale the gradient down to this norm where it is longer.
        clip_value: cut each entry of the gradient off at this size.
        autocast: compute in this type where that is safe: ``"bfloat16"``.
        log_every: updates between measurements of the training loss.
        eval_every: updates between measurements on validation data; ``None`` means never.
        eval_batch_size: held-out samples at a time.
        eval_batches: held-out batches, the first ones; ``None`` means all.
        judge: the measure on validation data by which the best is told; its goal says whether more
            is better.
        stop_below: end once the validation loss is below this.
        patience: end once the validation loss (or `judge`) has not improved for so many
            measurements.
        keep_best: end with the weights of the best validation loss (or `judge`), not with the last.
        average_after: from this update on, judge and end with the mean of the weights.
        average_when_stale: begin to average once a validation loss (or `judge`) is worse than the
            best of those more than so many measurements ago: NT-ASGD's condition.
        schedule: how the rate falls to zero by the last update, along half a ``"cosine"`` or in a
            ``"linear"`` way; ``None`` means that it stays.
    """

    steps: int
    batch_size: int = 32
    accumulate: int = 1
    clip: float | None = None
    clip_value: float | None = None
    autocast: str | None = None
    log_every: int = 10
    eval_every: int | None = 100
    eval_batch_size: int = 250
    eval_batches: int | None = None
    judge: str = "loss"
    stop_below: float | None = None
    patience: int | None = None
    keep_best: bool = False
    average_after: int | None = None
    average_when_stale: int | None = None
    schedule: Schedule | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "accumulate", "log_every", "eval_batch_size"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1))
        for name in ("clip", "clip_value", "stop_below"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, positive(name, value))
        for name in (
            "eval_every",
            "eval_batches",
            "patience",
            "average_after",
            "average_when_stale",
        ):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole(name, value, 1))
        if self.stop_below is not None and self.judge != "loss":
            raise InputError(
                f"expected judge='loss' beside stop_below, which is about the loss, but got "
                f"{self.judge!r}. Leave one of them out."
            )
        for name, value in self._judged_by().items() if self.eval_every is None else ():
            raise InputError(
                f"expected eval_every beside {name}={value}, which goes by measurements on "
                f"validation data, but got none. Try eval_every=100, or leave {name} out."
            )
        if self.autocast is not None:
            if self.autocast == "float16":
                raise InputError(
                    "expected autocast='bfloat16', but got 'float16', in which small gradients "
                    "vanish. Try bfloat16, which has the range of float32."
                )
            one_of("autocast", self.autocast, ("bfloat16",))
        if self.schedule is not None:
            one_of("schedule", self.schedule, get_args(Schedule))

    def _judged_by(self) -> dict[str, Any]:
        """The options that are set and go by measurements on validation data."""
        names = ("stop_below", "patience", "keep_best", "average_when_stale")
        asked = {name: getattr(self, name) for name in names}
        return {name: value for name, value in asked.items() if value not in (None, False)}

    def measures_after(self, step: int) -> bool:
        """Whether to measure on validation data after this update.

        A training that is too short for `eval_every` is measured at its end, if it goes by that.
        """
        if self.eval_every is None:
            return False
        short = step == self.steps < self.eval_every
        return step % self.eval_every == 0 or (short and bool(self._judged_by()))


class Supervised:
    """A model on its way through a task, one update at a time.

    Args:
        model: what is trained; it is put into training mode.
        task: the data, the loss and the measures; stored data have at least as many samples as a
            batch.
        optimiser: as `attractor.optimisers.attach` makes it, or any other.
        plan: how long, and what is done on the way.
        generator: draws the batches.
        scheduler: is stepped after each update, in the place of the plan's ``schedule``; a
            ``ReduceLROnPlateau`` after each measurement on validation data, by the plan's `judge`.
        also: more to measure beside the task's own, such as how much of the model is pruned.
        stop: asked after each update whether to end there, as if it were the last of the plan.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.tasks import Digits
        >>> model, g = MLP([64, 32, 10]), torch.Generator().manual_seed(0)
        >>> adam = torch.optim.Adam(model.parameters(), 0.01)
        >>> training = Supervised(model, Digits(order="flat"), adam, Plan(50), generator=g)
        >>> while not training.done:
        ...     rows = training.advance()
        >>> training.measure("valid")["accuracy"] > 0.5
        True
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task,
        optimiser: Optimizer,
        plan: Plan,
        *,
        generator: Generator,
        scheduler: LRScheduler | None = None,
        also: Callable[[], dict[str, float]] = dict,
        stop: Callable[[], bool] = bool,
    ) -> None:
        check_batch_size(task, plan.batch_size)
        self.model, self.task, self.optimiser, self.plan = model, task, optimiser, plan
        self.scheduler = scheduler or scheduled(plan.schedule, optimiser, plan.steps)
        if isinstance(scheduler, ReduceLROnPlateau) and plan.eval_every is None:
            raise InputError(
                "expected eval_every beside ReduceLROnPlateau, which goes by measurements on "
                "validation data, but got none. Try eval_every=100, or another scheduler."
            )
        self.also, self.stop = also, stop
        self.sampler = task.batches(plan.batch_size, generator=generator)
        self.device = next(model.parameters()).device
        self.step = 0
        self.ended = False
        self.norm = math.nan
        self.best = math.inf
        self.since_best = 0
        self.judged: list[float] = []
        self.average = Average(model)
        if plan.judge not in task.measures:
            raise unknown("measure to judge by", plan.judge, task.measures)
        self._best_weights: dict[str, Tensor] | None = None
        self._placed = False
        self._reader = seen_by(model.train())
        if averages(optimiser):  # schedule-free ones take no step before they are told to
            optimiser.train()  # type: ignore[attr-defined]

    @property
    def done(self) -> bool:
        return self.ended or self.step >= self.plan.steps

    @property
    def solved(self) -> bool:
        """Whether the validation loss fell below what was asked for."""
        return self.plan.stop_below is not None and self.best < self.plan.stop_below

    def advance(self) -> list[Row]:
        plan = self.plan
        loss = self._backward()
        before, self.norm = self.norm, self._clipped()
        if not (math.isfinite(loss) and math.isfinite(self.norm)):
            raise self._diverged(self.step + 1, loss, before)
        if isinstance(self.optimiser, Learned):  # some heed the loss
            self.optimiser.step(lambda: loss)
        else:
            self.optimiser.step()
        if self.scheduler is not None and not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        self.step += 1
        if plan.average_after is not None and self.step >= plan.average_after:
            self.average.begin()
        self.average.update()
        rows: list[Row] = []
        if self.step % plan.log_every == 0:
            rows.append({"split": "train", "loss": loss, "gradient_norm": self.norm})
        if plan.measures_after(self.step):
            found = self.measure("valid")
            self._judge(found[plan.judge])
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(found[plan.judge])
            rows.append({"split": "valid", **found})
        self.ended = self.ended or self.stop()
        if self.done:
            self.average.settle()
            if self._best_weights is not None:
                self.model.load_state_dict(self._best_weights)
            elif averages(self.optimiser):
                self.optimiser.eval()  # type: ignore[attr-defined]
            self._placed = True
        return rows

    def measure(self, split: Split) -> dict[str, float]:
        """The task's measures on a split; those of an objective, which has no data, on itself."""
        model, task, plan = self.model, self.task, self.plan
        with self._casting(), self._judged():
            if isinstance(task, Objective):
                found = averaged(model, task, [self.sampler.draw()])
            else:
                found = evaluate(
                    model, task, split, plan.eval_batch_size, batches=plan.eval_batches
                )
        return found | self.also()

    def _backward(self) -> float:
        """The gradient of the mean loss over the batches of one update; that loss."""
        self.optimiser.zero_grad()
        total = 0.0
        for _ in range(self.plan.accumulate):
            batch, part = shared(self.sampler.draw())
            batch = batch.to(self.device)
            begin(self._reader, batch)
            where = f" in the batch of step {self.step + 1}"
            with self._casting(), labels_told(self._reader, self.task, batch, where):
                loss = self.task.loss(self._reader, batch)
            loss = penalised(loss, self.model)
            if self.plan.accumulate > 1 or part < 1:
                loss = loss * part / self.plan.accumulate
            torch.autograd.backward(loss)
            total += loss.item()
            if not math.isfinite(total):
                _expect_finite(batch, self.step + 1)
        return add_up(self.model, total)

    def _clipped(self) -> float:
        """The norm of the gradient before it is cut to what the plan allows."""
        limit = math.inf if self.plan.clip is None else self.plan.clip
        norm = cut_to_norm(self.model.parameters(), limit)
        if self.plan.clip_value is not None:
            nn.utils.clip_grad_value_(self.model.parameters(), self.plan.clip_value)
        return norm

    def _casting(self) -> AbstractContextManager[Any]:
        return casting(self.plan.autocast, self.device.type)

    @contextmanager
    def _judged(self) -> Iterator[None]:
        """The model where it is to be judged; at the end it is there already."""
        if self._placed or not averages(self.optimiser):
            with self.average.used():
                yield
            return
        optimiser: Any = self.optimiser
        optimiser.eval()
        try:
            with self.average.used():
                yield
        finally:
            optimiser.train()

    def _judge(self, value: float) -> None:
        """Note the best on validation data so far, whether to end, and whether to average."""
        measure: Measure = self.task.measures[self.plan.judge]
        value = -value if measure.goal == "max" else value
        if value < self.best:
            self.best, self.since_best = value, 0
            if self.plan.keep_best:
                with self._judged():
                    self._best_weights = cloned(dict(self.model.state_dict()))
        else:
            self.since_best += 1
        stale = self.plan.average_when_stale
        if stale is not None and any(value > before for before in self.judged[:-stale]):
            self.average.begin()
        self.judged.append(value)
        tired = self.plan.patience is not None and self.since_best >= self.plan.patience
        self.ended = self.solved or tired

    def state_dict(self) -> Nested:
        if not all(p.isfinite().all() for p in self.model.parameters()):
            raise self._diverged(self.step, math.nan, self.norm)
        cuda = self.device.type == "cuda"
        return {
            "step": self.step,
            "ended": self.ended,
            "best": self.best,
            "since_best": self.since_best,
            "best_weights": self._best_weights,
            "judged": self.judged,
            "average": self.average.state_dict(),
            "model": dict(self.model.state_dict()),
            "optimiser": self.optimiser.state_dict(),
            "scheduler": None if self.scheduler is None else plain(self.scheduler),
            "sampler": self.sampler.state_dict(),
            "carried": all_leaves(self._reader, self.plan.batch_size),
            "random": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state(self.device) if cuda else None,
        }

    def load_state_dict(self, state: Nested) -> None:
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        self.sampler.load_state_dict(state["sampler"])
        if isinstance(self._reader, Carried):
            self._reader.take_up(own_leaves(self._reader, state["carried"]))
        self.step, self.ended = state["step"], state["ended"]
        self.best, self.since_best = state["best"], state["since_best"]
        self._best_weights = state["best_weights"]
        self._placed = self.done
        # checkpoints of 0.1 have neither
        self.judged = [*state.get("judged", [])]
        self.average.load_state_dict(state.get("average", {"mean": None, "count": 0}))
        torch.set_rng_state(state["random"])
        if state["cuda"] is not None:
            torch.cuda.set_rng_state(state["cuda"], self.device)

    def _diverged(self, step: int, loss: float, before: float) -> Diverged:
        what = "the gradient norm" if math.isfinite(loss) else "the loss"
        value = self.norm if math.isfinite(loss) else loss
        clip = "" if self.plan.clip else "clip=1, "
        return Diverged(
            f"{what} became {value} at step {step} of {self.plan.steps} (gradient norm "
            f"{self.norm:.3g}, {before:.3g} a step before)",
            f"Try {clip}a smaller learning rate, or another seed.",
        )


def _expect_finite(batch: Batch, step: int) -> None:
    """Tell a loss that is not finite because the data are not from one that ran away."""
    for name, part in (("inputs", batch.x), ("answers", batch.y)):
        for tensor in part if isinstance(part, tuple) else (part,):
            if isinstance(tensor, Tensor):
                expect_finite(tensor, f"the {name} of the batch of step {step}")
    expect_asked(batch.y, f" in the batch of step {step}")


def averages(optimiser: Optimizer) -> bool:
    """Whether an optimiser has an average of its own to judge a network at, as schedule-free ones.

    Example:
        >>> from attractor.optimisers import Anytime
        >>> weights = [nn.Parameter(torch.zeros(2))]
        >>> averages(Anytime()(weights)), averages(torch.optim.SGD(weights))
        (True, False)
    """
    return all(callable(getattr(optimiser, name, None)) for name in ("eval", "train"))


def casting(autocast: str | None, device: str) -> AbstractContextManager[Any]:
    """Where losses are computed in another type, if one is asked for."""
    if autocast is None:
        return nullcontext()
    return torch.autocast(device, dtype=getattr(torch, autocast))
