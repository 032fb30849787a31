"""Train, prune, retrain: which weights go, that they stay away, and runs of it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from attractor.errors import InputError
from attractor.experiments.kinds.supervised import SupervisedRun, build
from attractor.optimisers import sparsity
from attractor.runs.drive import Context
from attractor.training import finish, hold, smallest
from contracts.cells import seeded


def test_the_smallest_of_all_layers_go_however_many_are_alike() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), (0.3, -2.0, 0.1, 0.05), strict=True):
            parameter.fill_(value)
    kept = smallest(model, 0.4)
    assert [int(one.sum()) for one in kept] == [3, 2, 0, 0]  # 4 of 9: 0.05, two 0.1, one 0.3
    assert [int(one.sum()) for one in smallest(model, 0.0)] == [4, 2, 2, 1]
    for share in (-0.1, 1.0):
        with pytest.raises(InputError, match="share of weights of at least 0 and below 1"):
            smallest(model, share)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam])
def test_what_went_stays_away_and_the_rest_is_trained(kind: Any) -> None:
    model = nn.Linear(6, 3)
    optimiser = kind(model.parameters(), lr=0.1)
    for _ in range(2):  # so that momenta are not zero
        model(torch.randn(4, 6, generator=seeded(1))).square().sum().backward()
        optimiser.step()
    kept = smallest(model, 0.5)
    hold(model, optimiser, kept)
    before = model.weight.detach().clone()
    assert sparsity(model) == pytest.approx(10 / 21)
    for _ in range(2):
        model(torch.randn(4, 6, generator=seeded(2))).square().sum().backward()
        optimiser.step()
    assert sparsity(model) == pytest.approx(10 / 21)
    assert ((model.weight == before) == ~kept[0]).all()


def config(**train: Any) -> SupervisedRun:
    return SupervisedRun.model_validate(
        {
            "experiment": "tiny",
            "title": "",
            "budget": "quick",
            "label": "SGD",
            "seed": 3,
            "task": {"name": "digits"},
            "model": {"name": "mlp", "hidden": [8]},
            "optimiser": {"name": "sgd", "lr": 0.5},
            "train": {"steps": 6, "eval_every": 6, "batch_size": 16, **train},
        }
    )


@pytest.mark.parametrize("rewind", [False, True])
def test_a_run_trains_prunes_and_trains_again_after_a_checkpoint_too(
    rewind: bool, tmp_path: Path
) -> None:
    context = Context(tmp_path)
    asked = config(prune=0.6, rewind=rewind)
    work = build(asked, context)
    process: Any = work.process
    rows = finish(process)
    assert {row["split"] for row in rows if row["step"] < 0} <= {"dense train", "dense valid"}
    dense, last = process.first.training.model, process.second.model
    ended = work.outcome()["test"]
    assert ended["sparsity"] == pytest.approx(0.6, abs=0.01)
    plain: Any = build(config(), context).process
    first = plain.model  # as the seed starts
    started: Any = build(asked, context).process
    while not started.first.done:
        started.advance()
    kept = smallest(dense, 0.6)
    from_where = first if rewind else dense
    pairs = zip(started.then().model.parameters(), from_where.parameters(), kept, strict=True)
    assert all(torch.equal(now, then * mask) for now, then, mask in pairs)
    started.advance()
    again: Any = build(asked, context).process
    again.load_state_dict(started.state_dict())
    finish(again)
    for one, other, mask in zip(
        again.second.model.parameters(), last.parameters(), kept, strict=True
    ):
        assert torch.equal(one, other)
        assert not one[~mask].any()


def test_only_plain_optimisers_are_trained_twice(tmp_path: Path) -> None:
    asked = config(prune=0.5).model_copy(update={"optimiser": {"name": "sgd", "grid": [0.1]}})
    with pytest.raises(InputError, match=r"train\.prune beside an optimiser with a rate"):
        build(asked, Context(tmp_path))
    with pytest.raises(InputError, match=r"train\.rewind beside train\.prune"):
        build(config(rewind=True), Context(tmp_path))


def test_older_runs_keep_their_names() -> None:
    assert config().id == config(prune=None, rewind=False).id != config(prune=0.5).id
