"""Training a recurrent network on a task: the work of a run."""

import math
import os
import shutil
from typing import Any

import torch
from torch import Tensor, nn

from attractor.cells import compile_steps
from attractor.errors import InputError
from attractor.experiments.build import Parts, build_parts
from attractor.experiments.kinds import SequenceRun
from attractor.runs.drive import Context
from attractor.state import Nested
from attractor.tasks import evaluate
from attractor.training.process import Diverged, Row


def build(config: SequenceRun, context: Context) -> "SequenceWork":
    """The work of a run."""
    return SequenceWork(config, build_parts(config, context.data))


class SequenceWork:
    """Batch after batch, measured now and then, until the steps are done or the task is solved."""

    def __init__(self, config: SequenceRun, parts: Parts) -> None:
        self.settings, self.parts, self.data = config.train, parts, parts.task
        self.step = 0
        self.solved = False
        self.norm = math.nan
        if self.settings.compile:
            _check_compiler()
            compile_steps(parts.model, steps=30)

    @property
    def done(self) -> bool:
        return self.solved or self.step >= self.settings.steps

    def advance(self) -> list[Row]:
        parts, settings = self.parts, self.settings
        batch = parts.sampler.draw()
        loss = parts.task.loss(parts.model(batch.x.to(parts.device)), batch.y.to(parts.device))
        parts.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        before, self.norm = self.norm, gradient_norm(parts.model, settings.clip)
        if not (math.isfinite(loss.item()) and math.isfinite(self.norm)):
            raise self._diverged(self.step + 1, loss.item(), before)
        parts.optimiser.step()
        self.step += 1
        rows: list[Row] = []
        if self.step % settings.log_every == 0:
            rows.append({"split": "train", "loss": loss.item(), "gradient_norm": self.norm})
        if self.step % settings.eval_every == 0:
            found = evaluate(parts.model, parts.task, "valid", settings.eval_batch_size)
            rows.append({"split": "valid", **found})
            self.solved = settings.stop_below is not None and found["loss"] < settings.stop_below
        return rows

    def outcome(self) -> dict[str, Any]:
        test = evaluate(self.parts.model, self.parts.task, "test", self.settings.eval_batch_size)
        if self.settings.stop_below is not None:
            # a run that did not get there counts as long as it was tried, and `solved` says so
            test |= {"steps_to_solve": self.step, "solved": float(self.solved)}
        return {
            "parameters": sum(p.numel() for p in self.parts.model.parameters()),
            "test": test,
        }

    def state_dict(self) -> Nested:
        parts = self.parts
        if not all(p.isfinite().all() for p in parts.model.parameters()):
            raise self._diverged(self.step, math.nan, self.norm)
        random: dict[str, Tensor] = {"global": torch.get_rng_state()}
        if parts.device.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(parts.device)
        return {
            "model": dict(parts.model.state_dict()),
            "optimiser": parts.optimiser.state_dict(),
            "sampler": parts.sampler.state_dict(),
            "random": random,
            "step": self.step,
            "solved": self.solved,
        }

    def load_state_dict(self, state: Nested) -> None:
        parts, random = self.parts, state["random"]
        parts.model.load_state_dict(state["model"])
        parts.optimiser.load_state_dict(state["optimiser"])
        parts.sampler.load_state_dict(state["sampler"])
        torch.set_rng_state(random["global"])
        if "cuda" in random:
            torch.cuda.set_rng_state(random["cuda"], parts.device)
        self.step, self.solved = state["step"], state["solved"]

    def _diverged(self, step: int, loss: float, before: float) -> Diverged:
        settings = self.settings
        what = "the gradient norm" if math.isfinite(loss) else "the loss"
        value = self.norm if math.isfinite(loss) else loss
        clip = "a smaller" if settings.clip else "train.clip=1, a smaller"
        return Diverged(
            f"{what} became {value} at step {step} of {settings.steps} (gradient norm "
            f"{self.norm:.3g}, {before:.3g} a step before)",
            f"Try {clip} train.lr than {settings.lr:g}, or another seed.",
        )


def gradient_norm(model: nn.Module, clip: float | None) -> float:
    """The norm of all gradients, which are scaled down to `clip` if it is greater."""
    parameters = [p for p in model.parameters() if p.grad is not None]
    limit = math.inf if clip is None else clip
    return float(nn.utils.clip_grad_norm_(parameters, limit))


def _check_compiler() -> None:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise InputError(
            f"expected a C++ compiler for train.compile=true, but there is no {compiler}. "
            "Install one, or use --set train.compile=false, which is slower."
        )
