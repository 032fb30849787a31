"""What every strategy of the table promises."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from attractor import InputError, citation
from attractor.continual import STRATEGIES, Learner, Strategy, train
from attractor.models import HCN, MLP, MultiHead, ResMLP, SequenceClassifier, SequenceTagger
from attractor.state import pack, unpack
from attractor.tasks import ArrayTask, Data, Shuffled
from attractor.tasks.streams import (
    Stream,
    own_heads,
    permuted_images,
    permuted_sequences,
    split_images,
)

strategies = pytest.mark.parametrize("name", sorted(STRATEGIES))
SMALL: dict[str, dict[str, Any]] = {
    "agem": {"per_class": 3, "reference_batch": 20},
    "der": {"size": 20, "replay": 5},
    "derpp": {"size": 20, "replay": 5},
    "er": {"size": 20, "replay": 5},
    "er_ace": {"size": 20, "replay": 5},
    "ewc": {"samples": 50},
    "gdumb": {"size": 100, "epochs": 20},
    "gem": {"size": 20},
    "hat": {"strength": 0.1},
    "icarl": {"size": 60, "replay": 5},
    "mas": {"samples": 50, "strength": 0.01},
    "metasgd_cl": {"size": 20, "replay": 5},
    "online_ewc": {"samples": 50},
}
OWN_RATES = {"gdumb", "metasgd_cl"}
"""Strategies that do not use the optimiser."""
OWN_START = {"der", "derpp", "er_ace", "icarl"}
"""Strategies that replay, or have another loss, in the first task too."""
TOLD = {"hat", "progressive"}
"""Strategies that are told the task, with parameters of their own for each."""


def made(name: str) -> Strategy:
    return STRATEGIES[name](**SMALL.get(name, {}))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@cache
def digits(tasks: int = 3, *, identity: bool = True) -> Stream:
    stream = permuted_images(dataset="digits", tasks=tasks, generator=seeded())
    return replace(stream, identity=identity)


def mlp(outputs: int = 10) -> MLP:
    return MLP([64, 24, 24, outputs], init="xavier", generator=seeded())


def parameters(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@strategies
def test_it_learns(name: str) -> None:
    faster = partial(torch.optim.SGD, lr=0.05)
    result = train(mlp(), digits(), made(name), iterations=150, optimiser=faster)
    assert result.matrix.shape == (4, 3)
    assert torch.isfinite(result.matrix).all()
    assert result.matrix[1, 0] > 0.4  # of ten classes
    assert result.metrics["acc"] > 0.3


@strategies
@pytest.mark.parametrize("network", [HCN, ResMLP])
def test_it_takes_other_networks(name: str, network: Callable[..., nn.Module]) -> None:
    model = network([64, 16, 16, 10], generator=seeded())
    result = train(model, digits(2), made(name), iterations=20)
    assert torch.isfinite(result.matrix).all()


def recurrent(name: str, stream: Stream, model: nn.Module) -> None:
    refused = [kind for kind in ("recurrent", stream[0].answers) if kind in made(name).limits]
    if refused:
        why = re.escape(made(name).limits[refused[0]])
        kind = r"SequenceClassifier|SequenceTagger"
        with pytest.raises(
            InputError, match=rf"got a ({kind}), of the kind '{refused[0]}': {why}\."
        ):
            train(model, stream, made(name), iterations=3)
        return
    result = train(model, stream, made(name), iterations=3)
    assert torch.isfinite(result.matrix).all()
    assert torch.isfinite(parameters(result.model)).all()


@strategies
def test_it_takes_recurrent_networks(name: str) -> None:
    stream = permuted_sequences(tasks=2, generator=seeded())
    model = SequenceClassifier("gru", 1, 6, 10, generator=seeded())
    recurrent(name, replace(stream, identity=True), model)


def ragged(answers: str) -> Stream:
    """Sequences of 3 to 6 steps; of another greatest length in each task."""
    tasks = []
    for place in range(2):
        longest = 5 + place
        lengths = torch.randint(3, longest + 1, (30,), generator=seeded(place))
        x = torch.randn(30, longest, 2, generator=seeded(place))
        size = (30,) if answers == "once" else (30, longest)
        y = torch.randint(3, size, generator=seeded(place))
        data = Data(x, y, lengths)
        tasks.append(ArrayTask(f"ragged {place}", place, data, data, (0, 1, 2)))
    return Stream("ragged", tasks, identity=True)


@strategies
def test_it_takes_packed_sequences(name: str) -> None:
    model = SequenceClassifier("lstm", 2, 5, 3, generator=seeded())
    recurrent(name, ragged("once"), model)


@strategies
def test_it_takes_answers_at_each_step(name: str) -> None:
    model = SequenceTagger("gru", 2, 5, 3, generator=seeded())
    recurrent(name, ragged("each step"), model)


@strategies
def test_it_takes_a_head_per_task(name: str) -> None:
    stream = own_heads(split_images(dataset="digits", size=5, relabel=True))
    assert stream.outputs == 10
    model = MultiHead(mlp(), [task.classes for task in stream])
    faster = partial(torch.optim.SGD, lr=0.05)
    result = train(model, stream, made(name), iterations=150, optimiser=faster)
    assert torch.isfinite(parameters(result.model)).all()
    learnt = 1 if name == "freeze" else 2  # heads freeze too
    assert result.matrix[-1, :learnt].min() > 0.4  # of five classes each


@strategies
def test_it_can_do_without_the_task_unless_it_says_so(name: str) -> None:
    stream = digits(2, identity=False)
    if name in TOLD:
        with pytest.raises(InputError, match=rf"{type(made(name)).__name__} expects to be told"):
            train(mlp(), stream, made(name), iterations=5)
    else:
        train(mlp(), stream, made(name), iterations=5)


@strategies
def test_the_first_task_is_learnt_as_by_naive(name: str) -> None:
    if name in TOLD:
        pytest.skip("it has parameters that the network has not")
    models = []
    for kind in ("naive", name):
        learner = Learner(mlp(), digits(2), made(kind), iterations=20, seed=3)
        for _ in range(19):
            learner.advance()
        models.append(parameters(learner.model))
    if name in OWN_RATES | OWN_START:
        assert not torch.equal(*models)
    else:
        assert torch.equal(*models)


@strategies
def test_it_can_be_used_again(name: str) -> None:
    strategy = made(name)
    one, other = (train(mlp(), digits(2), strategy, iterations=15) for _ in range(2))
    assert torch.equal(parameters(one.model), parameters(other.model))


@strategies
def test_the_seed_decides(name: str) -> None:
    one, same, other = (
        train(mlp(), digits(2), made(name), iterations=10, seed=seed) for seed in (0, 0, 1)
    )
    assert torch.equal(parameters(one.model), parameters(same.model))
    assert not torch.equal(parameters(one.model), parameters(other.model))


@strategies
def test_the_hooks_in_ones_own_loop_do_the_same(name: str) -> None:
    stream = digits(2)
    expected = train(mlp(), stream, made(name), iterations=15, seed=0)

    data = seeded(0)
    draws = int(torch.randint(2**62, (), generator=data))
    torch.manual_seed(0)
    strategy = made(name)
    model = strategy.start(mlp(), stream, generator=seeded(draws))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    for task in stream:
        strategy.start_task(model, task, optimiser, 15)
        batches = Shuffled(task, 10, generator=data)
        for _ in range(15):
            optimiser.zero_grad()
            batch = batches.draw()
            strategy.loss(model, batch).backward()  # type: ignore[no-untyped-call]
            strategy.observe(batch)
            strategy.after_backward(model)
            strategy.step(model, optimiser)
        strategy.end_task(model, task)
    assert torch.equal(parameters(model), parameters(expected.model))


def flattened(state: dict[str, Any]) -> dict[str, Any]:
    tensors, rest = pack(state)
    return {path: t.tolist() for path, t in tensors.items()} | {"rest": rest}


@strategies
def test_to_ask_for_the_loss_changes_nothing(name: str) -> None:
    """A closure asks several times in one update, others for batches that are not learnt from."""
    stream = digits(3)
    ends = []
    for often in (1, 3):
        strategy = made(name)
        model = strategy.start(mlp(), stream, generator=seeded(7))
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
        for task in stream:
            strategy.start_task(model, task, optimiser, 6)
            batches, others = (Shuffled(task, 10, generator=seeded(seed)) for seed in (1, 2))
            for _ in range(6):
                batch = batches.draw()
                losses, before = [], flattened(strategy.state_dict())
                for _ in range(often):
                    optimiser.zero_grad()
                    losses.append(strategy.loss(model, batch))
                    if often > 1:
                        strategy.loss(model, others.draw())
                        strategy.loss(model, stream[0].samples(torch.arange(4)))
                assert all(torch.equal(loss, losses[0]) for loss in losses)
                assert flattened(strategy.state_dict()) == before
                losses[-1].backward()  # type: ignore[no-untyped-call]
                strategy.observe(batch)
                strategy.after_backward(model)
                strategy.step(model, optimiser)
            strategy.end_task(model, task)
        ends.append(parameters(model))
    assert torch.equal(*ends)


def through_a_file(state: dict[str, Any]) -> Any:
    """What safetensors and JSON make of a state."""
    tensors, rest = pack(state)
    stored = save({name: t.contiguous() for name, t in tensors.items()})
    return unpack(load(stored), json.loads(json.dumps(rest)))


@strategies
@pytest.mark.parametrize("after", [0, 7, 20, 27])
def test_a_learner_goes_on_bit_by_bit(name: str, after: int) -> None:
    def learner(seed: int) -> Learner:
        return Learner(
            MLP([64, 12, 12, 10], dropout=0.2, init="xavier", generator=seeded(seed)),
            digits(3),
            made(name),
            optimiser=lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.5),
            iterations=20,
            evaluate_every=8,
            seed=seed,
        )

    one = learner(0)
    for _ in range(after):
        one.advance()
    state = through_a_file(one.state_dict())
    losses = []
    while not one.done:
        losses.append(one.advance())
    other = learner(1)
    for _ in range(3):
        other.advance()
    other.load_state_dict(state)
    for loss in losses:
        assert other.advance() == loss
    assert other.done
    assert torch.equal(parameters(other.model), parameters(one.model))
    assert torch.equal(other.result().matrix, one.result().matrix)
    assert other.result().curve == one.result().curve


@strategies
def test_a_state_is_not_changed_by_going_on(name: str) -> None:
    learner = Learner(mlp(), digits(2), made(name), iterations=8)
    for _ in range(10):
        learner.advance()
    state = learner.state_dict()
    before = {path: t.clone() for path, t in pack(state)[0].items()}
    for _ in range(6):
        learner.advance()
    for path, tensor in pack(state)[0].items():
        assert torch.equal(tensor.nan_to_num(), before[path].nan_to_num()), path


@strategies
def test_it_names_its_paper(name: str) -> None:
    assert "year" in citation(name)


@strategies
def test_names_of_saved_state_are_frozen(name: str) -> None:
    """Checkpoints must keep loading: what a strategy saves after a task is here."""
    path = Path(__file__).with_name("strategies.json")
    g = seeded()
    train, test = (Data(torch.randn(n, 4, generator=g), torch.arange(n) % 3) for n in (9, 6))
    tasks = [ArrayTask(f"task {place}", place, train, test, (0, 1, 2)) for place in (0, 1)]
    model = MLP([4, 5, 3], generator=seeded())
    learner = Learner(
        model, Stream("two", tasks, identity=True), made(name), iterations=2, batch_size=4
    )
    while learner.task == 0:
        learner.advance()
    tensors, rest = pack(learner.strategy.state_dict())
    found: dict[str, Any] = {key: list(value.shape) for key, value in tensors.items()}
    found["names"] = sorted(rest)
    assert found == json.loads(path.read_text()).get(name), (
        f"expected the names and shapes in {path.name}; if {name} is new, add\n"
        f'"{name}": {json.dumps(found)}'
    )
