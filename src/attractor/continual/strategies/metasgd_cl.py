"""MetaSGD for continual learning."""

from typing import Any, get_args

import torch
from torch import Generator, Tensor, nn
from torch.optim import Adam, Optimizer

from attractor.checks import flag, number, one_of, whole
from attractor.continual.gradients import GroupGradients
from attractor.continual.replay.episodes import Episodes, OfTasks
from attractor.continual.strategies.base import Loss, Strategy, latest
from attractor.errors import InputError
from attractor.tasks import Batch, StoredTask, joined
from attractor.tasks.answers import cross_entropy
from attractor.tasks.streams import Stream


class MetaSGDCL(Strategy):
    r"""MetaSGD for continual learning: learn a learning rate per parameter and per task.

    .. math::
        \theta_{t+1} &= \theta_t - \beta_V \odot \nabla L_V
            - \frac{1}{V-1} \sum_{u=1}^{V-1} \beta_u \odot \nabla L_u && (6.8) \\
        \beta_V &= \mathrm{ReLU}(\min(b_V, \kappa)) && (6.7) \\
        L(\beta_V) &= L(F_{\theta_{t+1}}(x_t), y_t) && (6.9)

    Rates are learnt for the present task, those of earlier tasks are frozen. The gradient of (6.9)
    is :math:`-\nabla L(\theta_{t+1}) \odot \nabla L_V(\theta_t)` where :math:`0 \le b_V \le \kappa`
    and else zero; Adam follows it, once for each update. It makes the step itself: the rate of the
    optimiser that the loop has does not count.

    Args:
        kappa: the greatest rate.
        initial: the rate with which each task begins.
        meta_lr: of Adam on the rates; 0 keeps them as they begin.
        meta_clip: each entry of the meta-gradient is clamped to plus or minus this.
        past: use this rate for all earlier tasks in place of what was learnt (the ablations of
            table 6.4: 0, 0.01 and 0.1).
        memory: ``"hard"`` (the first samples of each task) or ``"ring"`` (``size`` in all).
        size: samples kept, of each task for ``"hard"``.
        replay: samples replayed of each earlier task at each update.
        shared: share ``replay`` out among the earlier tasks at random, at least one of each, as the
            script behind figure 6.7 does: about so many in all.
        released: step as the authors' released code does, whose ``meta_lr`` is 0.001:

            .. math::
                \theta_{t+1} = \theta_t - \beta_V \odot \nabla L_V
                    - \frac{1}{V} \sum_{u=1}^{V-1} \beta_{u+1} \odot \nabla L_u, \qquad
                \beta_V = \min(b_V, \kappa)

            so that the latest of the earlier tasks has the rates that are being learnt, and rates
            may be below zero.

    Example:
        >>> MetaSGDCL(kappa=0.1).replay
        10

    Departs from the paper: nothing that it states, but for ``released``, which is its code. The
    clamp of the meta-gradient and the meta-loss on new and replayed samples are the code's too.

    References:
        Kuo et al. (2021), Learning to continually learn rapidly from few and noisy data,
        arXiv:2103.04066; Kuo (2021), thesis, section 6.1, equations 6.6 to 6.9.
    """

    reference = "kuo2021learning"
    limits = {  # noqa: RUF012
        "wider": "it keeps rates of each of its weights",
        "more answers": "earlier tasks have no rates of weights that came after them",
    }
    own_rates = True
    newer = ("released",)

    def __init__(
        self,
        *,
        kappa: float = 0.02,
        initial: float = 0.01,
        meta_lr: float = 0.01,
        meta_clip: float = 1.0,
        past: float | None = None,
        memory: OfTasks = "hard",
        size: int = 250,
        replay: int = 10,
        shared: bool = False,
        released: bool = False,
    ) -> None:
        number("kappa", kappa, 0)
        number("meta_lr", meta_lr, 0)
        number("meta_clip", meta_clip, 0)
        if past is not None:
            number("past", past, 0)
        if not 0 <= initial <= kappa:
            raise InputError(
                f"expected an initial rate from 0 to kappa = {kappa}, but got {initial}. "
                f"Try {kappa / 2}."
            )
        self.kappa, self.initial, self.past = kappa, initial, past
        self.meta_lr, self.meta_clip = meta_lr, meta_clip
        self.memory, self.size, self.replay = memory, size, whole("replay", replay, 1)
        self.shared, self.released = flag("shared", shared), flag("released", released)

    def start(self, model: nn.Module, stream: Stream, *, generator: Generator) -> nn.Module:
        one_of("memory", self.memory, get_args(OfTasks))
        self.episodes = Episodes(
            self.memory, self.size, len(stream), generator=generator, stream=stream
        )
        self.gradients = GroupGradients(model)
        theta = self.gradients.flat.values()
        self.tasks, self.frozen = len(stream), theta.new_zeros(0, len(theta))
        self._begin(torch.full_like(theta, self.initial))
        return model

    def _begin(self, b: Tensor) -> None:
        self.b = b.requires_grad_()
        self.meta = Adam([self.b], lr=self.meta_lr, fused=True)

    def end_task(self, model: nn.Module, task: StoredTask) -> None:
        self.frozen = self.rates
        self._begin(torch.full_like(self.b.detach(), self.initial))

    @property
    def rates(self) -> Tensor:
        """The rates of all tasks so far, frozen but for those of the task being learnt.

        Shape:
            ``(tasks, parameters)``.
        """
        return torch.cat([self.frozen, self._rate()[None]])[: self.tasks]

    def _rate(self) -> Tensor:
        return self.b.detach().clamp(None if self.released else 0, self.kappa)  # (6.7)

    def extend(self, stream: Stream) -> None:
        self.episodes.extend(stream)
        self.tasks = len(stream)

    def observe(self, batch: Batch, base: Loss = cross_entropy) -> None:
        self._batch, self._base = batch, base
        self.episodes.add(batch)

    def step(self, model: nn.Module, optimiser: Optimizer) -> None:
        flat = self.gradients.flat
        new = flat.gradient()
        learnt = min(latest(self._batch), len(self.frozen))
        past = self.episodes.before(learnt)
        replayed = [self._batch]
        change = -self._rate() * new  # (6.8)
        if past:
            each = self.episodes.shared(self.replay, learnt) if self.shared else self.replay
            sizes = self.episodes.drawn(each, past)
            old = self.episodes.draw(each, past)
            replayed.append(old)
            G = self.gradients.of_groups(old, sizes, self._base)
            count = len(past) + self.released
            change -= G.blend(self._rates_of(past)) / count
            if self.released and self.past is None and past[-1] == len(self.frozen) - 1:
                last = torch.arange(len(past), device=new.device) == len(past) - 1
                new = new + G.combine(last.to(new)) / count  # whose rates are learnt too
        flat.add(change)
        if self.meta_lr:
            self._learn(model, new, joined(replayed))

    def _rates_of(self, past: list[int]) -> Tensor:
        """The rates with which earlier tasks are replayed, a row for each."""
        if self.past is not None:
            return self.frozen.new_full((len(past), len(self.b)), self.past)
        if self.released:
            return torch.cat([self.frozen[1:], self._rate()[None]])[past]
        return self.frozen[past] if len(past) < len(self.frozen) else self.frozen

    def _learn(self, model: nn.Module, new: Tensor, samples: Batch) -> None:
        """One step of Adam on (6.9), whose gradient is known in closed form."""
        b = self.b.detach()
        after = self.gradients.flat.gradient_of(self._base(model, samples))
        gradient = -after * new * (((b >= 0) | self.released) & (b <= self.kappa))
        self.b.grad = gradient.clamp_(-self.meta_clip, self.meta_clip)
        self.meta.step()

    def state_dict(self) -> dict[str, Any]:
        return {
            "episodes": self.episodes.state_dict(),
            "frozen": self.frozen,
            "b": self.b.detach(),
            "adam": self.meta.state_dict()["state"].get(0, {}),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if state["b"].shape != self.b.shape:
            raise InputError(
                f"expected rates of {len(self.b)} parameters, but the state holds "
                f"{len(state['b'])}. Resume with the model that was saved."
            )
        self.episodes.load_state_dict(state["episodes"])
        self.frozen = state["frozen"].clone()
        self._begin(state["b"].clone())
        if state["adam"]:
            self.meta.load_state_dict(self.meta.state_dict() | {"state": {0: state["adam"]}})
