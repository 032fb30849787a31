"""One network, one stream, one strategy: the only training loop of continual learning."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD

from attractor.cells.base import penalised
from attractor.checks import instance, whole
from attractor.continual import rates
from attractor.continual.draws import Draws
from attractor.continual.fitting import check, check_limits, per_task, room_for
from attractor.continual.growing import as_saved
from attractor.continual.identity import expect_same, identity
from attractor.continual.result import CurvePoint, Result, accuracies, bytes_of
from attractor.continual.stopping import Patience
from attractor.continual.strategies.base import Loss, Strategy
from attractor.continual.strategies.choose import strategy_of
from attractor.errors import InputError
from attractor.optimisers import Maker, attach, choose
from attractor.state import cloned
from attractor.tasks import Batch, Shuffled, Split, StoredTask, joined
from attractor.tasks.streams import Stream
from attractor.training.clipping import cut_to_norm
from attractor.training.process import Diverged, Row, finish
from attractor.training.schedules import Schedule
from attractor.training.supervised import Plan, casting

PLAIN: Maker = partial(SGD, lr=0.01)
"""The optimiser of the thesis."""


class Learner:
    """A network on its way through a stream, advanced one update at a time.

    It owns all that changes: the model, the optimiser, what the strategy remembers, the position in
    the stream and in the data, and the accuracies so far. `state_dict` holds the lot, and a learner
    made from the same arguments goes on from there bit by bit.

    Args:
        model: the network; samples come first in what it is given, so a recurrent layer needs
            ``batch_first=True``.
        stream: the tasks.
        strategy: how to learn them, as itself, by its key in ``STRATEGIES``, or as a table with
            ``name`` and options; ``None`` means one after the other (`Naive`).
        optimiser: what makes one from parameters, a key of ``OPTIMISERS``, or a table with a
            ``name`` and options; learned or not. It lives through all tasks.
        batch_size: samples in a batch.
        epochs: how often the data of a task are gone through.
        iterations: updates of each task instead of epochs; a number, or one for each task.
        seed: decides the batches, all that the strategy draws, and dropout. On the CPU torch's
            default generator, from which dropout draws, is left as it was.
        evaluate_every: updates between points of the learning curve; ``None`` measures only at the
            end of each task.
        loss: on samples; the strategy builds on it. By default that of the stream's tasks.
        log_every: updates between measurements of the loss.
        split: what the tasks' test samples are, for the record: ``"valid"`` of a stream that keeps
            its test samples for later.
        accumulate: batches whose gradients are averaged for one update; the strategy observes them
            together, once.
        clip: scale the gradient down to this norm where it is longer, after the strategy.
        clip_value: cut each entry of the gradient off at this size.
        schedule: how the rate falls to zero within each task, along half a ``"cosine"`` or in a
            ``"linear"`` way; ``None`` means that it stays.
        autocast: compute the loss in this type where that is safe: ``"bfloat16"``.
        callbacks: are called after each update with the learner and what was measured, to which
            they may append; one function or several.
        patience: end a task once its validation loss has not improved for so many measurements.
        eval_every: updates between those measurements.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.tasks.streams import permuted_images
        >>> g = torch.Generator().manual_seed(0)
        >>> stream = permuted_images(dataset="digits", tasks=2, generator=g)
        >>> learner = Learner(MLP([64, 32, 10], generator=g), stream, iterations=50)
        >>> while not learner.done:
        ...     rows = learner.advance()
        >>> learner.result().matrix.shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        model: nn.Module,
        stream: Stream,
        strategy: Strategy | str | Mapping[str, Any] | None = None,
        *,
        optimiser: Maker | str | Mapping[str, Any] = PLAIN,
        batch_size: int = 10,
        epochs: int = 1,
        iterations: int | Sequence[int] | None = None,
        seed: int = 0,
        evaluate_every: int | None = None,
        loss: Loss | None = None,
        log_every: int = 1,
        split: Split = "test",
        accumulate: int = 1,
        clip: float | None = None,
        clip_value: float | None = None,
        schedule: Schedule | None = None,
        autocast: str | None = None,
        callbacks: "Callback | Sequence[Callback]" = (),
        patience: int | None = None,
        eval_every: int | None = None,
    ) -> None:
        instance("model", model, nn.Module, "MLP([64, 32, 10])")
        instance("stream", stream, Stream, "permuted_images(...)")
        self.batch_size = whole("batch_size", batch_size, 1)
        self.epochs, self.iterations = whole("epochs", epochs, 1), per_task(iterations, len(stream))
        self.plan = Plan(
            1,
            self.batch_size,
            accumulate=accumulate,
            clip=clip,
            clip_value=clip_value,
            schedule=schedule,
            autocast=autocast,
        )
        self.callbacks = [callbacks] if callable(callbacks) else list(callbacks)
        self.patience = Patience(patience, every=eval_every)
        if evaluate_every is not None:
            whole("evaluate_every", evaluate_every, 1)
        self.evaluate_every, self.log_every = evaluate_every, whole("log_every", log_every, 1)
        self.split = split
        self.base: Loss = stream[0].loss if loss is None else loss
        self.stream = stream
        self.strategy = strategy_of(strategy)
        check_limits(self.strategy, model, optimiser, stream)
        self._generator = torch.Generator().manual_seed(seed)
        draws = torch.randint(2**62, (), generator=self._generator)
        self._draws = Draws(seed)
        self.model = self.strategy.start(
            model, stream, generator=torch.Generator().manual_seed(int(draws))
        )
        check(self.model, stream)
        self._make = optimiser
        self._attach(self.model)
        self.step = self.task = self.update = 0
        self._batches: Shuffled | None = None
        self.curve: list[CurvePoint] = []
        self.seconds: list[float] = []
        self.grown: list[int] = []
        self.matrix = torch.full((len(stream) + 1, len(stream)), torch.nan, dtype=torch.float64)
        self.matrix[0] = accuracies(self.model, stream)

    @property
    def done(self) -> bool:
        """Whether the last task is learnt."""
        return self.task == len(self.stream)

    @property
    def updates(self) -> int:
        """How many updates the present task takes."""
        if isinstance(self.iterations, int):
            return self.iterations
        if self.iterations is not None:
            return self.iterations[min(self.task, len(self.iterations) - 1)]
        return -(-self.epochs * len(self.stream[self.task]) // self.batch_size)

    def advance(self) -> list[Row]:
        """Make one update, and all that comes before and after a task; what was measured."""
        if self.done:
            raise InputError(
                f"expected a learner with a task to learn, but all {len(self.stream)} of "
                f"{self.stream.name!r} are learnt. Ask `learner.done` before each update."
            )
        task, began = self.task, time.process_time()
        with self._draws():
            loss = float(self._update())
        self.seconds[task] += time.process_time() - began
        self.step += 1
        if not math.isfinite(loss):
            raise Diverged(
                f"the loss became {loss} at update {self.step} of all, in task {task + 1}",
                "Try a smaller rate of the optimiser, or another seed.",
            )
        rows: list[Row] = []
        if self.step % self.log_every == 0:
            rows.append({"split": "train", "loss": loss})
        if self.task > task:
            now = self.matrix[task + 1]
            each = {f"task_{place + 1}": float(a) for place, a in enumerate(now)}
            mean = {self.stream[task].score: float(now[: task + 1].mean())}
            rows.append({"split": self.split, **mean, **each})
        for callback in self.callbacks:
            callback(self, rows)
        return rows

    def _update(self) -> Tensor:
        """One update; the loss on the batch."""
        task = self.stream[self.task]
        if self._batches is None:
            self._start_task(task)
            self._batches, self._until = self._new_batches(task), self.updates
            self.patience.start()
            self.seconds.append(0.0)
        for parameter in self._parameters:
            parameter.grad = None
        parts = [self._batches.draw() for _ in range(self.plan.accumulate)]
        loss = self._backward(parts)
        self.strategy.observe(joined(parts), self.base)
        self.strategy.after_backward(self.model)
        self._limit()
        self.strategy.step(self.model, self.optimiser)
        self.update += 1
        if self.evaluate_every is not None and self.update % self.evaluate_every == 0:
            now = tuple(accuracies(self.model, self.stream).tolist())
            self.curve.append(CurvePoint(self.task, self.update, now))
        if self.update == self._until or self.patience.enough(self.model, task, self.update):
            self.strategy.end_task(self.model, task)
            self.matrix[self.task + 1] = accuracies(self.model, self.stream)
            self.task, self.update, self._batches = self.task + 1, 0, None
        return loss.detach()

    def _backward(self, parts: list[Batch]) -> Tensor:
        """The gradient of the mean loss over the batches of one update; that loss."""
        total = torch.zeros(())
        for batch in parts:
            with casting(self.plan.autocast, batch.y.device.type):
                loss = penalised(self.strategy.loss(self.model, batch, self.base), self.model)
            if len(parts) == 1:
                torch.autograd.backward(loss)
                return loss
            torch.autograd.backward(loss / len(parts))
            total = total + loss.detach().cpu() / len(parts)
        return total

    def _limit(self) -> None:
        """Cut the gradient to what was asked for, and set the rate of this update."""
        if self.plan.clip is not None:
            cut_to_norm(self._parameters, self.plan.clip)
        if self.plan.clip_value is not None:
            nn.utils.clip_grad_value_(self._parameters, self.plan.clip_value)
        if self.plan.schedule is not None:
            rates.fall(self.optimiser, self.plan.schedule, self.update, self._until)

    def _start_task(self, task: StoredTask) -> None:
        """Begin a task; if the strategy gives another model, the optimiser begins anew."""
        if self.plan.schedule is not None:
            rates.restore(self.optimiser)
        model = self.strategy.start_task(self.model, task, self.optimiser, self.updates)
        if model is not None and model is not self.model:
            check_limits(self.strategy, self.model, grows="wider")
            self._adopt(model)
            self.grown.append(self.task)
        if self.plan.schedule is not None:
            rates.keep(self.optimiser)

    def learn(self, task: StoredTask) -> Result:
        """Learn one task more, after the stream's end; what it is able to do then.

        Whatever of the stream is left comes first. If the task brings new classes, the last layer
        grows, and its optimiser's moments are carried over. Of the untrained network's accuracy on
        the task nothing is known, so that the first row of the matrix has a NaN there.

        Example:
            >>> from attractor.continual import ER
            >>> from attractor.models import MLP
            >>> from attractor.tasks.streams import split_images
            >>> stream = split_images(dataset="digits", size=2)
            >>> learner = Learner(MLP([64, 32, 4]), stream[:2], ER("classes", 50), iterations=40)
            >>> result = learner.learn(stream[2])
            >>> result.matrix.shape, learner.model.layers[-1].out_features
            (torch.Size([4, 3]), 6)
        """
        finish(self)
        self.add(task)
        finish(self)
        return self.result()

    def add(self, task: StoredTask) -> None:
        """Append a task to the stream, and make room for it."""
        tasks, before = len(self.stream), len(list(self.model.parameters()))
        stream = replace(self.stream, tasks=[*self.stream.tasks, task.at(tasks)])
        # all that may be refused comes first
        growth = room_for(stream, self.model, self.strategy, generator=self._generator)
        self.strategy.extend(stream)
        self.stream, optimiser = stream, self.optimiser
        if growth is not None:
            old = self.model
            self._adopt(growth.model)
            growth.carry_rows(old, optimiser, self.optimiser)
        elif len(list(self.model.parameters())) > before:
            self._attach(self.model)
        matrix = torch.full((tasks + 2, tasks + 1), torch.nan, dtype=torch.float64)
        matrix[:-1, :-1] = self.matrix
        matrix[self.task, tasks] = accuracies(self.model, self.stream)[tasks]
        self.matrix = matrix

    def _adopt(self, model: nn.Module) -> None:
        """Go on with another model, if the strategy can."""
        self.strategy.adopt(model)
        self._attach(model)

    def _attach(self, model: nn.Module) -> None:
        """Take a model, and build the optimiser on it."""
        make = self._make
        if not callable(make):
            make = choose(make, model, self.stream[0].samples(torch.tensor([0])).x)
        self.model, self._parameters = model.train(), list(model.parameters())
        self.optimiser = attach(make, model)

    def result(self) -> Result:
        """What it was able to do; the rows of tasks that are still to come are NaN."""
        names = [task.name for task in self.stream]
        curve, seconds = tuple(self.curve), tuple(self.seconds)
        kept = bytes_of(self.strategy.state_dict())
        return Result(self.matrix.clone(), names, self.model, curve, seconds, kept)

    def state_dict(self) -> dict[str, Any]:
        """All that changes, as tensors, plain values, and dictionaries and lists of them."""
        state = {
            "made": self._made(),
            "step": self.step,
            "task": self.task,
            "update": self.update,
            "batches": None if self._batches is None else self._batches.state_dict(),
            "generator": self._generator.get_state(),
            "random": self._draws.state,
            "matrix": self.matrix,
            "curve": [[one.task, one.update, *one.accuracies] for one in self.curve],
            "model": dict(self.model.state_dict()),
            "optimiser": self.optimiser.state_dict(),
            "strategy": self.strategy.state_dict(),
            "seconds": self.seconds,
            "patience": self.patience.state_dict(),
            "grown": self.grown,
        }
        copies: dict[str, Any] = cloned(state)
        return copies

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a learner with the same arguments was; if that fails, nothing has changed."""
        expect_same(self._made(), state.get("made", {}))
        before, model = self.state_dict(), self.model
        if state.get("grown", self.grown) != self.grown:  # by the strategy, at the start of a task
            self._adopt(as_saved(model, state["model"]))
        try:
            self._load(state)
        except (KeyError, RuntimeError, ValueError) as error:
            if self.model is not model:
                self._adopt(model)
            self._load(before)
            reason = str(error).strip().splitlines()[-1].strip().rstrip(".")
            raise InputError(
                f"expected the state of a learner of the same model, but: {reason}. Make the "
                "learner with the arguments that it had."
            ) from error

    def _made(self) -> dict[str, Any]:
        """What a learner must have in common with the one whose state it takes over."""
        return {
            "stream": f"{self.stream.name} ({self.stream.fingerprint()})",
            "strategy": identity(self.strategy),
            "optimiser": type(self.optimiser).__name__,
            "batch_size": self.batch_size,
            "epochs": self.epochs,
            "iterations": self.iterations,
        }

    def _load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.strategy.load_state_dict(state["strategy"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.task, self.update = state["step"], state["task"], state["update"]
        self.matrix, self.seconds = state["matrix"].clone(), list(state.get("seconds", ()))
        self.seconds += [0.0] * (self.task + (state["batches"] is not None) - len(self.seconds))
        if "patience" in state:  # which those of version 0.2 do not have
            self.patience.load_state_dict(state["patience"])
        self.curve = [CurvePoint(task, update, tuple(a)) for task, update, *a in state["curve"]]
        self.grown = list(state.get("grown", ()))
        self._generator.set_state(state["generator"])
        self._batches = None
        if state["batches"] is not None:
            self._batches = self._new_batches(self.stream[self.task])
            self._batches.load_state_dict(state["batches"])
            self._until = self.updates
        self._draws.state = state["random"].clone()

    def _new_batches(self, task: StoredTask) -> Shuffled:
        device = next(self.model.parameters()).device
        return Shuffled(task, self.batch_size, generator=self._generator, device=device)


Callback = Callable[[Learner, list[Row]], None]
"""What is called after an update, with the learner and what was measured."""
