"""Persistent evolution strategies: meta-gradients without a graph, for horizons of any length."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from attractor.errors import InputError
from attractor.meta.divergence import Patience
from attractor.meta.learners import Learners, Problem
from attractor.meta.saving import (
    learner_tensors,
    load_learner_tensors,
    load_rule_tensors,
    rule_tensors,
    under,
)
from attractor.meta.settings import (
    bounds,
    check_counts,
    check_generator,
    check_numbers,
    draw_horizon,
    normal,
)
from attractor.meta.trainer import Progress
from attractor.optimisers import Rule, State
from attractor.tasks import Batch


class _Update(nn.Module):
    """A rule's update as a module's forward pass, so that it can be run with other weights."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule

    def forward(
        self, grads: Tensor, each: Any, shared: Any, params: Tensor, context: Tensor | None
    ) -> Any:
        def lead(tree: Any) -> Any:
            return torch.utils._pytree.tree_map(lambda t: t[None], tree)

        state = State(lead(each), lead(shared))
        shown = None if context is None else context[None]
        steps, after = self.rule.update(grads[None], state, params[None], context=shown)
        drop = after.map(lambda t: t[0])
        return steps[0], drop.each, drop.shared


class PESTrainer:
    r"""Trains a rule by persistent evolution strategies.

    .. math::
        \hat g = \frac{1}{2 \sigma^2 P} \sum_{i=1}^P \xi_i
        \left( L_i(\eta + \epsilon_i) - L_i(\eta - \epsilon_i) \right), \qquad
        \xi_i \leftarrow \xi_i + \epsilon_i, \quad \epsilon_i \sim N(0, \sigma^2)

    P pairs of learners run with the rule's weights moved one way and the other. Losses are those
    of one short stretch, but what multiplies them is the sum of all moves since a learner began:
    so the estimate is not biased by cutting a long training into short pieces, as truncated
    backpropagation is. Only the forward pass is needed, so memory does not grow with the stretch.

    Args:
        rule: what is trained, in place.
        problems: what its learners are; each pair keeps to one at a time, taking turns.
        updates: of the rule, in all.
        pairs: P.
        steps: updates of each learner before a fresh one takes its place; a pair draws a number
            between the two for each learner, evenly on a logarithmic scale.
        unroll: updates of the learners between two of the rule.
        sigma: :math:`\sigma`.
        lr: of Adam, which updates the rule.
        clip: bound of a loss, so that one learner that diverges does not decide. If no loss of
            any learner is below it, all are given up and the rule stays as it is; after five such
            updates in a row, or the last two, or all there are, a `RunError` says so and the rule
            has the weights again with which learners last fared well.
        generator: draws everything that is random.

    Example:
        >>> from attractor.models import MLP
        >>> from attractor.optimisers import DMSGD
        >>> from attractor.tasks import Digits
        >>> problem = Problem(lambda g: MLP([64, 4, 10], generator=g), Digits(order="flat"), 8)
        >>> trainer = PESTrainer(
        ...     DMSGD(hidden_size=4), [problem], updates=2, pairs=2, steps=10, unroll=5,
        ...     generator=torch.Generator().manual_seed(0),
        ... )
        >>> trainer.advance().step
        5

    Departs from the paper: all pairs start at the beginning of a learner and at different
    horizons if `steps` is a pair, not at random points of it.

    References:
        Vicol et al. (2021), Unbiased gradient estimation in unrolled computation graphs with
        persistent evolution strategies, arXiv:2112.13835.
    """

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem],
        *,
        updates: int = 100,
        pairs: int = 4,
        steps: int | tuple[int, int] = 100,
        unroll: int = 20,
        sigma: float = 0.01,
        lr: float = 1e-3,
        clip: float = 10.0,
        generator: Generator,
    ) -> None:
        check_counts(
            updates=(updates, None),
            pairs=(pairs, None),
            unroll=(unroll, None),
            problems=(len(problems), None),
        )
        check_numbers(lr=lr, sigma=sigma, clip=clip)
        if min(sigma, clip) <= 0:
            raise InputError(
                f"expected sigma and clip to be above 0, but got {sigma} and {clip}. Leave them "
                "out for the defaults."
            )
        bounds(steps)
        check_generator(generator)
        self.rule, self.problems = rule, list(problems)
        self.updates, self.steps, self.unroll = updates, steps, unroll
        self.sigma, self.clip, self.generator = sigma, clip, generator
        self.adam = torch.optim.Adam(rule.parameters(), lr=lr)
        self.patience = Patience(
            rule, updates, "updates", "Try a smaller lr, a smaller sigma, or a larger clip."
        )
        self.update = 0
        self.started = 0
        self.particles = [self._fresh() for _ in range(pairs)]

    @property
    def done(self) -> bool:
        """Whether all updates are done."""
        return self.update >= self.updates

    def advance(self) -> Progress:
        """One stretch of every pair, and one update of the rule."""
        weights = dict(self.rule.named_parameters())
        estimate = {name: torch.zeros_like(value) for name, value in weights.items()}
        losses, alive = [], False
        for index, particle in enumerate(self.particles):
            difference, loss, some = particle.stretch(self.rule, self.unroll, self.sigma, self.clip)
            alive |= some
            for name, moves in particle.moved.items():
                estimate[name] += difference / (2 * self.sigma**2) * moves
            losses.append(loss)
            if particle.step >= particle.horizon:
                self.particles[index] = self._fresh()
        progress = Progress(self.update + 1, self.unroll, sum(losses) / len(losses), losses[-1])
        if alive:
            self.patience.well()
            for name, value in weights.items():
                value.grad = estimate[name] / len(self.particles)
            nn.utils.clip_grad_norm_(self.rule.parameters(), 1.0)
            self.adam.step()
        else:
            where = f"at update {progress.round}"
            self.patience.lost(where, last=progress.round == self.updates)
            self.particles = [self._fresh() for _ in self.particles]
        self.update += 1
        return progress

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes: tensors by name under ``tensors``, the rest plain values."""
        tensors = rule_tensors(self.rule, self.adam)
        tensors["generator"] = self.generator.get_state()
        for index, pair in enumerate(self.particles):
            found = learner_tensors(pair.learners, pair.params, pair.state)
            found |= {f"moved.{name}": value.clone() for name, value in pair.moved.items()}
            tensors |= {f"pair.{index}.{name}": value for name, value in found.items()}
        tensors |= self.patience.tensors()
        numbers = {"update": self.update, "started": self.started, **self.patience.numbers()}
        pairs = [[pair.problem, pair.horizon, pair.step] for pair in self.particles]
        return {"tensors": tensors, "numbers": numbers, "pairs": pairs}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        tensors: dict[str, Tensor] = saved["tensors"]
        load_rule_tensors(self.rule, self.adam, tensors)
        self.patience.load(saved["numbers"], tensors)
        self.particles = []
        for index, (problem, horizon, step) in enumerate(saved["pairs"]):
            pair = self._pair(problem, horizon)
            found = under(tensors, f"pair.{index}.")
            pair.params, pair.state = load_learner_tensors(self.rule, pair.learners, found)
            pair.moved, pair.step = under(found, "moved.", pair.params.device), step
            self.particles.append(pair)
        self.update, self.started = saved["numbers"]["update"], saved["numbers"]["started"]
        self.generator.set_state(tensors["generator"])

    def _fresh(self) -> "_Pair":
        horizon = draw_horizon(self.steps, self.generator)
        problem = self.started % len(self.problems)
        self.started += 1
        return self._pair(problem, horizon)

    def _pair(self, problem: int, horizon: int) -> "_Pair":
        return _Pair(self.rule, self.problems, problem, horizon, self.generator)


class _Pair:
    """Two learners that start alike and see the same batches, under opposite moves of the rule."""

    def __init__(
        self,
        rule: Rule,
        problems: Sequence[Problem],
        problem: int,
        horizon: int,
        generator: Generator,
    ) -> None:
        self.learners = Learners(problems[problem], 1, generator=generator)
        self.generator, self.problem = generator, problem
        self.horizon, self.step = horizon, 0
        self.params = self.learners.first_params(rule).repeat(2, 1)
        self.state = self.learners.first_state(rule, self.params)
        self.moved = {name: torch.zeros_like(p) for name, p in rule.named_parameters()}
        self.learners.buffers = {
            k: v.repeat(2, *[1] * (v.dim() - 1)) for k, v in self.learners.buffers.items()
        }

    @torch.no_grad()
    def stretch(
        self, rule: Rule, unroll: int, sigma: float, clip: float
    ) -> tuple[float, float, bool]:
        """Run both for some updates: the difference of their mean losses, and their mean.

        Also whether any loss was below `clip`: if none was, the difference says nothing.
        """
        moves = {
            name: sigma * normal(p.shape, like=p, generator=self.generator)
            for name, p in rule.named_parameters()
        }
        both = {
            f"rule.{name}": torch.stack([p + moves[name], p - moves[name]])
            for name, p in rule.named_parameters()
        }
        module = _Update(rule)

        def update(weights: Any, *inputs: Any) -> Any:
            return functional_call(module, weights, inputs)

        total, alive = torch.zeros(2, device=self.params.device), False
        for _ in range(unroll):
            drawn = self.learners.draw()
            batch = Batch(*(part.repeat(2, *[1] * (part.dim() - 1)) for part in drawn))
            _, gradient = self.learners.gradients(self.params, batch)
            context = batch.x if rule.needs_context else None
            dims = (0, 0, 0, 0, 0, None if context is None else 0)
            steps, each, shared = vmap(update, in_dims=dims, randomness="same")(
                both, gradient, self.state.each, self.state.shared, self.params, context
            )
            self.params = self.learners.held(self.params, self.params + steps)
            self.state = State(each, shared)
            losses = self.learners.losses(self.params, batch)
            total += torch.nan_to_num(losses, nan=clip, posinf=clip).clamp(max=clip)
            alive |= bool((losses < clip).any())
        self.step += unroll
        for name, move in moves.items():
            self.moved[name] += move
        mean = total / unroll
        return float(mean[0] - mean[1]), float(mean.mean()), alive
