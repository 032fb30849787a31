"""VeLO beside its equations with losses and unequal tensors, and its published weights."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from attractor.errors import InputError
from attractor.optimisers import Velo, load_velo
from contracts.cells import seeded
from contracts.optimisers import make_rule
from optimisers import weights
from optimisers.references import random
from optimisers.test_celo import followed
from reference import scheduled

SHAPES = ((2, 40), (3,), (3, 2, 5, 4), (), (1, 6))


@pytest.mark.parametrize("steep", [50.0, 0.1])
@pytest.mark.parametrize("told", [True, False])
def test_unequal_tensors_against_numpy(told: bool, steep: float) -> None:
    """Filters, a row, gradients beyond the limit or small, and a loss that bursts."""
    rule: Any = random(Velo(horizon=9, hidden_size=3, scheduler_size=5, perceptrons=4))
    for value in rule.parameters():
        value.data *= 0.3
    followed(rule, scheduled.velo, weights.velo(rule), SHAPES, told=told, steep=steep)


def test_tensors_hear_one_another() -> None:
    rule: Any = random(Velo(horizon=9, hidden_size=3, scheduler_size=5, perceptrons=4))
    for value in rule.parameters():
        value.data *= 0.3

    def after(*shape: int) -> Tensor:
        values = torch.linspace(-1, 2, 6).double()
        tensors = [nn.Parameter(values.clone()), nn.Parameter(values.reshape(shape))]
        optimiser = rule(tensors)
        for _ in range(3):
            for one in tensors:
                one.grad = one.detach().sin()
            optimiser.step(partial(torch.tensor, 1.0))
        return tensors[0].detach()

    assert not torch.equal(after(6), after(2, 3))


class Published:
    """Weights as the authors name and keep them."""

    def __init__(self, told: int = 30) -> None:
        g = seeded(4)

        def drawn(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=g)

        widths = (1, 1, 1, 3, 1, 3, 1, 3, 1, 3, 3, 3, 3, 3)
        self.parts = [drawn(7, width, 4) for width in widths]
        self.file = {f"ff_mod_stack/~/w0__{i}": part for i, part in enumerate(self.parts)}
        sizes = {"w1": (4, 4), "w2": (4, 3), "b0": (4,), "b1": (4,), "b2": (3,)}
        self.file |= {f"ff_mod_stack/~/{k}": drawn(7, *size) for k, size in sizes.items()}
        shapes = {"linear": (told, 6), "linear_1": (told, 6), "linear_2": (told, 6)}
        shapes |= {"rnn/linear": (12, 24), "rnn_to_controls": (6, 7), "step_size": (6, 1)}
        for name, shape in shapes.items():
            self.file[f"rnn_params/{name}/w"] = drawn(*shape)
            self.file[f"rnn_params/{name}/b"] = drawn(shape[1])
        self.file |= {f"lstm_init_state/{name}": drawn(1, 6) for name in ("hidden", "cell")}

    def save(self, folder: Path) -> Path:
        save_file(self.file, folder / "params.safetensors")
        return folder / "params.safetensors"


@pytest.mark.parametrize("told", [30, 31])
def test_published_weights_are_loaded(told: int, tmp_path: Path) -> None:
    of = Published(told)
    rule = load_velo(of.save(tmp_path), horizon=70)
    assert (rule.horizon, rule.options["perceptrons"]) == (70, 7)
    torch.testing.assert_close(rule.weights[0], torch.cat(of.parts, 1))
    torch.testing.assert_close(rule.weights[2], of.file["ff_mod_stack/~/w2"][..., :2])
    torch.testing.assert_close(rule.biases[2], of.file["ff_mod_stack/~/b2"][:, :2])
    torch.testing.assert_close(rule.read.weight, of.file["rnn_params/linear_2/w"][:30].mT)
    torch.testing.assert_close(rule.mix.weight, of.file["rnn_params/linear_1/w"][:30].mT)
    torch.testing.assert_close(rule.choose.weight, of.file["rnn_params/rnn_to_controls/w"].mT)
    torch.testing.assert_close(rule.rate.bias, of.file["rnn_params/step_size/b"])
    torch.testing.assert_close(rule.hidden, of.file["lstm_init_state/hidden"][0])


def test_other_files_are_refused(tmp_path: Path) -> None:
    of = Published()
    del of.file["rnn_params/rnn_to_controls/w"]
    with pytest.raises(InputError, match=r"expected the weights of VeLO.*rnn_to_controls"):
        load_velo(of.save(tmp_path), horizon=9)
    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match=r"expected the weights of VeLO.*but got a"):
        load_velo(tmp_path / "other.safetensors", horizon=9)


def test_its_horizon_is_heeded() -> None:
    moved = []
    for horizon in (9, 90):
        weight = nn.Parameter(torch.linspace(-1, 2, 6))
        optimiser = make_rule("velo", horizon=horizon)([weight])
        for _ in range(2):
            weight.grad = weight.detach().sin()
            optimiser.step()
        moved.append(weight.detach())
    assert not torch.equal(*moved)
