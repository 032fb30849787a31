"""MetaSGD-CL against equations 6.7 to 6.9, differentiated by autograd."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from attractor import InputError
from attractor.continual import Learner, MetaSGDCL
from attractor.continual.flat import Flat
from attractor.models import HCN, MLP
from attractor.tasks import Batch
from continual.helpers import batch, digits, mlp, seeded


class Reference:
    """The equations on named parameters, with autograd for every derivative."""

    def __init__(
        self, model: MLP, kappa: float, initial: float, past: float | None, released: bool = False
    ) -> None:
        self.model, self.kappa, self.initial, self.past = model, kappa, initial, past
        self.released = released
        self.theta = {n: p.detach().double() for n, p in model.named_parameters()}
        self.frozen: list[dict[str, Tensor]] = []
        self.start_task()

    def start_task(self) -> None:
        self.b = {n: torch.full_like(p, self.initial) for n, p in self.theta.items()}
        for b in self.b.values():
            b.requires_grad_()
        self.adam = torch.optim.Adam(self.b.values(), lr=0.01)

    def beta(self) -> dict[str, Tensor]:
        bounded = {n: torch.clamp(b, max=self.kappa) for n, b in self.b.items()}
        return bounded if self.released else {n: torch.relu(b) for n, b in bounded.items()}  # 6.7

    def loss(self, theta: dict[str, Tensor], samples: Batch) -> Tensor:
        output = functional_call(self.model, theta, (samples.x.double(),))
        return F.cross_entropy(output, samples.y)

    def gradient(self, samples: Batch) -> dict[str, Tensor]:
        theta = {n: p.clone().requires_grad_() for n, p in self.theta.items()}
        found = torch.autograd.grad(self.loss(theta, samples), list(theta.values()))
        return dict(zip(theta, found, strict=True))

    def step(self, new: Batch, old: list[Batch]) -> None:
        g, past = self.gradient(new), [self.gradient(samples) for samples in old]
        beta = self.beta()
        after = {}
        for n, p in self.theta.items():
            change = beta[n] * g[n]
            for u, g_u in enumerate(past):
                if self.released:  # of the task after it; of the latest, those being learnt
                    rate: Any = self.frozen[u + 1][n] if u + 1 < len(self.frozen) else beta[n]
                else:
                    rate = self.frozen[u][n]
                rate = rate if self.past is None else self.past
                change = change + rate * g_u[n] / (len(past) + self.released)
            after[n] = p - change  # 6.8
        everything = Batch(
            torch.cat([new.x, *(s.x for s in old)]),
            torch.cat([new.y, *(s.y for s in old)]),
            task=new.task,
        )
        self.adam.zero_grad()
        self.loss(after, everything).backward()  # type: ignore[no-untyped-call]
        for b in self.b.values():
            assert b.grad is not None
            b.grad.clamp_(-1, 1)
        self.adam.step()
        self.theta = {n: p.detach() for n, p in after.items()}

    def end_task(self) -> None:
        self.frozen.append({n: b.detach() for n, b in self.beta().items()})
        self.start_task()


@pytest.mark.parametrize(
    ("past", "released"), [(None, False), (0.0, False), (0.01, False), (0.1, False), (None, True)]
)
def test_learning_follows_the_equations(past: float | None, released: bool) -> None:
    model, stream = mlp().double(), digits()
    strategy = MetaSGDCL(kappa=0.1, past=past, size=6, replay=6, released=released)
    strategy.start(model, stream, generator=seeded())
    reference = Reference(mlp().double(), 0.1, 0.01, past, released)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.0)  # not used
    kept: list[Batch] = []
    for task in stream:
        strategy.start_task(model, task, optimiser, 6)
        for seed in range(6):
            some = batch(task, 10, seed)
            some = Batch(some.x.double(), some.y, task=some.task)
            optimiser.zero_grad()
            strategy.loss(model, some).backward()  # type: ignore[no-untyped-call]
            strategy.observe(some)
            strategy.step(model, optimiser)
            reference.step(some, kept)
            if seed == 0:
                first = some[:6]  # with 6 kept and 6 replayed, what is drawn is known
        kept = [*kept, first]
        strategy.end_task(model, task)
        reference.end_task()
        expected = torch.cat([p.flatten() for p in reference.theta.values()])
        torch.testing.assert_close(Flat(model).values(), expected, rtol=1e-8, atol=1e-10)
        rates = torch.stack(
            [torch.cat([t.flatten() for t in one.values()]) for one in reference.frozen]
        )
        torch.testing.assert_close(strategy.frozen, rates, rtol=1e-7, atol=1e-9)
    assert bool((strategy.frozen < 0).any()) == released


def test_rates_stay_between_zero_and_kappa_and_are_frozen_with_their_task() -> None:
    strategy = MetaSGDCL(kappa=0.015)
    learner = Learner(mlp(), digits(), strategy, iterations=40)
    kept: list[Tensor] = []
    while not learner.done:
        task = learner.task
        learner.advance()
        assert float(strategy.rates.min()) >= 0
        assert float(strategy.rates.max()) <= 0.015 + 1e-9
        if learner.task > task:
            kept.append(strategy.frozen[-1].clone())
    assert torch.equal(strategy.frozen, torch.stack(kept))
    assert float(kept[0].std()) > 1e-4  # something was learnt
    assert strategy.rates.shape == (3, len(kept[0]))


def test_rates_that_are_not_learnt_stay_as_they_begin() -> None:
    strategy = MetaSGDCL(initial=0.02, meta_lr=0.0)
    learner = Learner(mlp(), digits(2), strategy, iterations=20)
    while not learner.done:
        learner.advance()
    assert (strategy.rates == 0.02).all()


def test_fixed_rates_on_the_first_task_are_plain_gradient_descent() -> None:
    ends = []
    for strategy, rate in ((MetaSGDCL(initial=0.02, meta_lr=0.0), 9.0), (None, 0.02)):
        model = mlp()
        learner = Learner(
            model,
            digits(2),
            strategy,
            optimiser=lambda p, rate=rate: torch.optim.SGD(p, lr=rate),  # type: ignore[misc]
            iterations=20,
        )
        for _ in range(20):
            learner.advance()
        ends.append(Flat(model).values())
    torch.testing.assert_close(*ends)


def test_rates_can_be_looked_at_by_name() -> None:
    strategy = MetaSGDCL()
    model = HCN([64, 8, 8, 10], generator=seeded())
    learner = Learner(model, digits(2), strategy, iterations=10)
    while not learner.done:
        learner.advance()
    named = strategy.gradients.flat.named(strategy.rates[0], model)
    assert named["gates.0.weight"].shape == (8, 64)


def test_bad_rates_are_refused() -> None:
    with pytest.raises(InputError, match="from 0 to kappa = 0.02, but got 0.1. Try 0.01"):
        MetaSGDCL(initial=0.1)
    with pytest.raises(InputError, match="expected meta_lr to be at least 0, but got -0.1"):
        MetaSGDCL(meta_lr=-0.1)
    with pytest.raises(InputError, match="expected past to be at least 0, but got -1"):
        MetaSGDCL(past=-1)
    with pytest.raises(InputError, match="hard, ring.*but got 'reservoir'"):
        Learner(mlp(), digits(), MetaSGDCL(memory="reservoir"))  # type: ignore[arg-type]


def test_a_state_of_another_model_is_refused() -> None:
    one, other = MetaSGDCL(), MetaSGDCL()
    one.start(mlp(), digits(), generator=seeded())
    other.start(mlp(16, 16), digits(), generator=seeded())
    with pytest.raises(InputError, match="rates of 1482 parameters.*holds 682"):
        other.load_state_dict(one.state_dict())
