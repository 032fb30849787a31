"""A learner and the optimiser that trains it, update by update."""

import math
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from attractor.experiments.learned_config import LearnedTrain
from attractor.optimisers import Learned, sparsity
from attractor.state import Nested
from attractor.tasks import Sampler, Split, Task, evaluate
from attractor.training.process import Diverged, Row


class Learning:
    """Batch after batch with one optimiser, measured now and then."""

    def __init__(
        self,
        settings: LearnedTrain,
        task: Task,
        network: nn.Module,
        optimiser: Optimizer,
        sampler: Sampler,
    ) -> None:
        self.settings, self.task = settings, task
        self.step = 0
        self.network, self.optimiser, self.sampler = network, optimiser, sampler

    @property
    def done(self) -> bool:
        return self.step >= self.settings.steps

    def advance(self) -> list[Row]:
        settings = self.settings
        place = next(self.network.parameters()).device
        x, y = (part.to(place) for part in self.sampler.draw())
        loss = self.task.loss(self.network(x), y)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        slopes = [p.grad for p in self.network.parameters() if p.grad is not None]
        if not (math.isfinite(loss.item()) and all(bool(g.isfinite().all()) for g in slopes)):
            raise self._diverged("the loss or its gradient")
        if isinstance(self.optimiser, Learned):
            self.optimiser.step(context=x)
        else:
            self.optimiser.step()
        self.step += 1
        rows: list[Row] = []
        if self.step % settings.log_every == 0 or self.step == 1:
            rows.append({"split": "train", "loss": loss.item()})
        if self.step % settings.eval_every == 0:
            rows.append({"split": "valid", **self.measure("valid")})
        return rows

    def measure(self, split: Split) -> dict[str, float]:
        """How the learner fares on a split, and how much of it is pruned if that is the aim."""
        size, batches = self.settings.eval_batch_size, self.settings.eval_batches
        found = evaluate(self.network, self.task, split, size, batches=batches)
        if isinstance(self.optimiser, Learned) and self.optimiser.rule.prunes:
            found["sparsity"] = sparsity(self.network)
        return found

    def outcome(self) -> dict[str, Any]:
        return {
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "test": self.measure("test"),
        }

    def state_dict(self) -> Nested:
        if not all(p.isfinite().all() for p in self.network.parameters()):
            raise self._diverged("a parameter")
        return {
            "network": dict(self.network.state_dict()),
            "optimiser": self.optimiser.state_dict(),
            "sampler": self.sampler.state_dict(),
            "random": torch.get_rng_state(),
            "step": self.step,
        }

    def load_state_dict(self, state: Nested) -> None:
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.sampler.load_state_dict(state["sampler"])
        torch.set_rng_state(state["random"])
        self.step = state["step"]

    def _diverged(self, what: str) -> Diverged:
        return Diverged(
            f"{what} became infinite or NaN at step {self.step + 1} of {self.settings.steps}",
            "Try a smaller learning rate, a longer meta-training, or another seed.",
        )
