"""The rules that come with the package: small, described, and of use on data they have not seen."""

import pytest
import torch

from attractor.errors import InputError
from attractor.experiments.rules import read_card
from attractor.models import MLP
from attractor.optimisers import OPTIMISERS, shipped
from attractor.optimisers.files import shipped_file
from attractor.tasks import Digits
from attractor.training import evaluate

KINDS = ["decaynet", "dmsgd", "ihc_lstm", "lstm", "m2sgd", "mtl2l"]
kinds = pytest.mark.parametrize("kind", KINDS)


def test_they_are_all_there() -> None:
    assert set(shipped()) >= {f"{kind}/mlp" for kind in KINDS}


@kinds
def test_small_and_described(kind: str) -> None:
    assert len(shipped_file(kind, "mlp").read_bytes()) < 100_000
    card = read_card(f"{kind}/mlp")
    assert card["kind"] == kind
    assert read_card(kind) == card  # the first of its kind
    assert card["tasks"] == [{"name": "mnist", "order": "flat"}]
    assert card["meta-training"]["learners"] == 20
    assert min(card["curve"][-10:]) < 0.7 * card["curve"][0]


def test_a_card_that_is_not_there_is_told_from_one_that_is() -> None:
    for name, said in (("pacer/mlp", "Did you mean|pacer/default"), ("pace", "pacer")):
        with pytest.raises(InputError, match=said):
            read_card(name)
    with pytest.raises(InputError, match="but rnnprop does not"):
        read_card("rnnprop")


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"mtl2l"}))
def test_it_trains_a_network_of_another_size_on_unseen_data(kind: str) -> None:
    """MTL2L wants to see images of 784 pixels; the others take any network."""
    generator = torch.Generator().manual_seed(0)
    task = Digits(order="flat")
    model = MLP([64, 16, 10], generator=generator)
    optimiser = OPTIMISERS[kind].kind.pretrained("mlp")(model.parameters())
    sampler = task.batches(64, generator=generator)
    for _ in range(60):
        optimiser.zero_grad()
        torch.autograd.backward(task.loss(model, sampler.draw()))
        optimiser.step()
    assert evaluate(model, task, "test", 250)["loss"] < 1.0
