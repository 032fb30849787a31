"""Any cell, any optimiser, any strategy, any network: what the tables promise together.

What a method cannot do is declared on its class; here a pair either works or is refused in one
sentence for a declared reason. `test_configured.py` tries the same from configurations.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attractor.cells import CELLS
from attractor.continual import HAT, STRATEGIES, Connection, Learner, Naive, combine
from attractor.continual.lifelong import Curriculum, Rules
from attractor.errors import InputError
from attractor.models import make_model
from attractor.optimisers import OPTIMISERS, LSTMOptimiser, attach, choose
from attractor.tasks import ArrayTask, Data, NumberTask, Task
from attractor.tasks.streams import Stream
from attractor.training import Plan, Supervised
from contracts.tiny import (
    CELL_OPTIONS,
    NETWORKS,
    RULES,
    STRATEGY_OPTIONS,
    Words,
    pictured,
    seeded,
    silent,
    streamed,
    task,
    worded,
)

cells = pytest.mark.parametrize("cell", sorted(CELLS))


def moved(before: list[Tensor], model: nn.Module) -> bool:
    after = [p.detach() for p in model.parameters()]
    return any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


def weights(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def model_on(spec: dict[str, Any], one: Task) -> nn.Module:
    each_step = one.answers == "each step"
    return make_model(spec, one.features, one.output_size, each_step=each_step, generator=seeded())


def trains(model: nn.Module, one: Task, optimiser: Any) -> None:
    """Two updates move the network, and nothing becomes infinite."""
    shown = one.batches(1, generator=seeded()).draw().x
    made = attach(choose(optimiser, model, shown, generator=seeded()), model)
    before = weights(model)
    training = Supervised(model, one, made, Plan(2, 4, log_every=1), generator=seeded())
    while not training.done:
        [row] = training.advance()
    assert moved(before, model) != silent(optimiser["name"], shown)
    assert all(p.isfinite().all() for p in model.parameters())
    assert row["loss"] > 0


@cells
@pytest.mark.parametrize("each_step", [False, True], ids=["classifier", "tagger"])
def test_every_cell_in_a_classifier_and_a_tagger(cell: str, each_step: bool) -> None:
    spec = {"cell": cell, "hidden_size": 4, **CELL_OPTIONS.get(cell, {})}
    one = task(timed=True, each_step=each_step)
    trains(model_on(spec, one), one, {"name": "adam", "lr": 0.01})


@cells
def test_every_cell_as_the_body_of_a_learned_optimiser(cell: str) -> None:
    options: dict[str, Any] = {"length": 100} if "decaynet" in cell else {}
    one = task(timed=False)
    model = model_on(NETWORKS["mlp"], one)
    rule = LSTMOptimiser(cell=cell, hidden_size=4, layers=1, generator=seeded(), **options)
    assert rule.head is not None
    nn.init.uniform_(rule.head.weight, 0.5, 1.0)  # zero until it is meta-trained
    before = weights(model)
    optimiser = attach(rule, model)
    training = Supervised(model, one, optimiser, Plan(2, 4), generator=seeded())
    while not training.done:
        training.advance()
    assert moved(before, model)


@cells
def test_every_cell_in_a_continual_learner(cell: str) -> None:
    spec = {"cell": cell, "hidden_size": 4, **CELL_OPTIONS.get(cell, {})}
    tasks = streamed(timed=True)
    learner = Learner(model_on(spec, tasks[0]), tasks, STRATEGIES["er"](), iterations=2)
    while not learner.done:
        learner.advance()
    assert learner.matrix.isfinite().all()


def words() -> tuple[nn.Module, Task]:
    torch.manual_seed(0)
    return Words(), worded()


def images() -> tuple[nn.Module, Task]:
    one = pictured()
    return model_on({"name": "convnet", "channels": [2], "hidden_size": 4}, one), one


def learner(name: str) -> tuple[nn.Module, Task]:
    if name == "embedding":
        return words()
    if name == "convnet":
        return images()
    one = task(timed=name == "recurrent")
    return model_on(NETWORKS[name], one), one


@pytest.mark.parametrize("network", ["mlp", "convnet", "recurrent", "embedding"])
@pytest.mark.parametrize("name", sorted(OPTIMISERS))
def test_every_optimiser_trains_every_network(name: str, network: str) -> None:
    model, one = learner(network)
    trains(model, one, {"name": name})


@pytest.mark.parametrize("name", [name for name, one in OPTIMISERS.items() if one.learned])
def test_what_an_untrained_rule_does_is_declared(name: str) -> None:
    one = task(timed=False)
    model = model_on(NETWORKS["mlp"], one)
    before = weights(model)
    spec = {"name": name, "pretrained": False}
    shown = one.batches(1, generator=seeded()).draw().x
    optimiser = attach(choose(spec, model, shown, generator=seeded()), model)
    training = Supervised(model, one, optimiser, Plan(2, 4), generator=seeded())
    while not training.done:
        training.advance()
    assert moved(before, model) != OPTIMISERS[name].kind.silent


CLASSES: dict[str, Any] = dict(STRATEGIES)
GROWN = ("wider", "more answers")
LIMITS = [
    (name, network, why) for name, kind in CLASSES.items() for network, why in kind.limits.items()
]


@pytest.mark.parametrize(("name", "network", "why"), LIMITS)
def test_every_limit_is_held(name: str, network: str, why: str) -> None:
    if network in GROWN:
        return limit_of_growth(name, network, why)
    sizes: dict[str, Any] = {**NETWORKS, "resnet": {"name": "resnet", "depth": 20, "channels": 1}}
    each_step = network == "each step"
    if network in ("convnet", "resnet"):
        one = images()[1]
    elif network == "no classes":
        data = Data(torch.randn(4, 3), torch.randn(4, 2))
        one = NumberTask("numbers", 0, data, data, (0, 1))
    else:
        one = task(timed=network in ("recurrent", "each step"), each_step=each_step)
    assert isinstance(one, ArrayTask)
    kind = {"each step": "recurrent", "no classes": "mlp"}.get(network, network)
    model = images()[0] if network == "convnet" else model_on(sizes[kind], one)
    tasks = Stream("one", [one], identity=True)
    with pytest.raises(
        InputError, match=rf"of the kind '{network}': {re.escape(why)}\. Try another"
    ):
        Learner(model, tasks, CLASSES[name](**STRATEGY_OPTIONS.get(name, {})))


def limit_of_growth(name: str, network: str, why: str) -> None:
    one, strategy = task(timed=False), CLASSES[name](**STRATEGY_OPTIONS.get(name, {}))
    assert isinstance(one, ArrayTask)
    model = model_on(NETWORKS["mlp"], one)
    match = rf"that gets '{network}': {re.escape(why)}\. Try another"
    if network == "wider":
        rules = Rules(steps=2, window=2, after=2, grow_to=64)
        with pytest.raises(InputError, match=match):
            Curriculum(model, Stream("one", [one]), strategy, rules=rules)
        return
    more = replace(one, classes=(*one.classes, 7), train=one.train._replace(y=one.train.y * 0 + 7))
    learner = Learner(model, Stream("one", [one]), strategy, iterations=1)
    with pytest.raises(InputError, match=match):
        learner.learn(more)


class Picky(Naive):
    limits = {"adam": "its steps must be gradients", "mlp": "it wants gates"}  # noqa: RUF012


@pytest.mark.parametrize("optimiser", ["adam", {"name": "adam", "lr": 0.1}])
def test_a_limit_on_optimisers_is_held(optimiser: Any) -> None:
    tasks = streamed(timed=False)
    with pytest.raises(
        InputError, match=r"got the optimiser 'adam': its steps must be gradients\. Try another"
    ):
        Learner(model_on(NETWORKS["hcn"], tasks[0]), tasks, Picky(), optimiser=optimiser)
    Learner(model_on(NETWORKS["hcn"], tasks[0]), tasks, Picky(), optimiser="sgd")


def test_limits_hold_for_parts_and_combinations() -> None:
    tasks = streamed(timed=False)
    model = nn.Sequential(model_on(NETWORKS["mlp"], tasks[0]))
    both = combine(STRATEGIES["er"](), Picky())
    with pytest.raises(
        InputError, match=r"got a Sequential, of the kind 'mlp': it wants gates\. Try another"
    ):
        Learner(model, tasks, both)


def test_wires_lift_the_limits_of_hat() -> None:
    wires = [Connection("0", None, (0,)), Connection("2", 0, ())]
    assert HAT(wires=wires).limits == {}
    assert "convnet" in HAT().limits


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("network", sorted(NETWORKS))
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_with_every_network_and_optimiser(
    name: str, network: str, rule: str
) -> None:
    tasks = streamed(timed=network == "recurrent")
    model = model_on(NETWORKS[network], tasks[0])
    kind: Any = STRATEGIES[name]
    before = weights(model)

    def learn() -> Learner:
        strategy = kind(**STRATEGY_OPTIONS.get(name, {}))
        made = Learner(model, tasks, strategy, optimiser=RULES[rule], iterations=2, batch_size=4)
        while not made.done:
            made.advance()
        return made

    refused = [why for needs, why in kind.limits.items() if needs in (network, rule)]
    if refused:
        with pytest.raises(
            InputError, match=rf"of the kind '{network}': {re.escape(refused[0])}\. Try "
        ):
            learn()
        return
    found = learn()
    assert found.matrix.isfinite().all()
    if not kind.wraps_model and not kind.own_rates and name != "slda":  # whose readout moves alone
        assert moved(before, found.model) != silent(rule, tasks[0].samples(torch.tensor([0])).x)


def test_what_strategies_cannot_do_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs/continual.md").read_text()
    listed = page.partition("## What a strategy cannot do")[2].partition("## ")[0]
    kinds: dict[str, Any] = STRATEGIES
    expected = [
        f"| `{name}` | {network} | {why} |"
        for name, kind in kinds.items()
        for network, why in kind.limits.items()
    ]
    assert [line for line in listed.splitlines() if line.startswith("| `")] == expected
