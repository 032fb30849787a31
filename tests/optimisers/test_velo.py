"""VeLO beside its equations with losses and unequal tensors, and its published weights."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from attractor.errors import InputError
from attractor.optimisers import Velo, load_celo, load_velo
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
            return 0.3 * torch.randn(*shape, generator=g)

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
        return saved(folder, params=self.file)[0]

    def checkpoint(self) -> dict[str, Tensor]:
        """As they are in the authors' `params`, where their count of steps is an array too."""
        return {f"params/{k}": value for k, value in self.file.items()} | {"step": torch.ones(())}

    def pylo(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """As PyLO names and keeps them, in two files, beside what it does not read of them."""
        names = {"linear": "mix_layer1", "linear_1": "mix_layer2", "linear_2": "final_mix_layer"}
        names |= {"rnn/linear": "lstm.linear"}
        names |= {name: name for name in ("rnn_to_controls", "step_size")}
        rnn = {}
        for name, own in names.items():
            rnn[f"{own}.weight"] = self.file[f"rnn_params/{name}/w"].mT.contiguous()
            rnn[f"{own}.bias"] = self.file[f"rnn_params/{name}/b"]
        for i, name in enumerate(("hidden", "cell")):
            rnn[f"lstm_init_state.{i}"] = self.file[f"lstm_init_state/{name}"]
        inner = {k: self.file[f"ff_mod_stack/~/{k}"] for k in ("w1", "w2", "b0", "b1", "b2")}
        mlp = {
            "input_weights_": torch.cat(self.parts, 1).mT.contiguous(),
            "input_bias_": inner["b0"],
            "hidden_weights_.0": inner["w1"].mT.contiguous(),
            "hidden_bias_.0": inner["b1"],
            "output_weights_": inner["w2"].mT.contiguous(),
            "output_bias_": inner["b2"],
        }
        return rnn, mlp | {k.replace("_.", ".").rstrip("_"): v[0].clone() for k, v in mlp.items()}


def saved(folder: Path, **files: dict[str, Tensor]) -> list[Path]:
    for name, arrays in files.items():
        save_file(arrays, folder / f"{name}.safetensors")
    return [folder / f"{name}.safetensors" for name in files]


def after(rule: Velo) -> Tensor:
    """Where three updates bring a matrix and a vector."""
    tensors = [nn.Parameter(torch.linspace(-1, 2, size)) for size in (12, 5)]
    tensors[0].data = tensors[0].data.reshape(3, 4)
    optimiser = rule(tensors)
    for loss in (2.0, 1.5, 1.7):
        for one in tensors:
            one.grad = one.detach().sin()
        optimiser.step(partial(torch.tensor, loss))
    return torch.cat([one.detach().flatten() for one in tensors])


def refusal(*paths: Path) -> str:
    """What is said of files: one sentence of ours and what to try."""
    with pytest.raises(InputError) as found:
        load_velo(*paths, horizon=9)
    assert found.value.__cause__ is None
    told = str(found.value)
    assert re.fullmatch(r"expected .*, but got .*\. (Try|Get|These) .*\.", told)
    return told.replace(str(paths[0].parent) + "/", "")


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


@pytest.mark.parametrize("told", [30, 31])
def test_three_ways_to_name_the_same_weights(told: int, tmp_path: Path) -> None:
    of = Published(told)
    rnn, mlp = of.pylo()
    params, whole, *two = saved(tmp_path, params=of.file, whole=of.checkpoint(), rnn=rnn, mlp=mlp)
    expected = load_velo(params, horizon=9)
    moved = after(expected)
    assert moved.isfinite().all()
    for paths in ([whole], two):
        rule = load_velo(*paths, horizon=9)
        assert rule.options == expected.options
        assert torch.equal(after(rule), moved)
    prefixed = {name: value for name, value in of.checkpoint().items() if name != "step"}
    assert torch.equal(after(load_velo(*saved(tmp_path, whole=prefixed), horizon=9)), moved)


def test_each_array_of_pylo_is_read_in_its_place(tmp_path: Path) -> None:
    """Of those turned about, one alone is square: it loads, but it is not the same rule."""
    rnn, mlp = Published().pylo()
    moved = after(load_velo(*saved(tmp_path, rnn=rnn, mlp=mlp), horizon=9))
    unread = {"mix_layer1.weight", "mix_layer1.bias"} | {k for k in mlp if "s_" not in k}
    for name, value in (rnn | mlp).items():
        other = {name: 1.25 * value}
        files = [{k: other.get(k, v) for k, v in one.items()} for one in (rnn, mlp)]
        rule = load_velo(*saved(tmp_path, rnn=files[0], mlp=files[1]), horizon=9)
        assert torch.equal(after(rule), moved) == (name in unread), name
    turned = mlp | {"hidden_weights_.0": mlp["hidden_weights_.0"].mT.contiguous()}
    rule = load_velo(*saved(tmp_path, rnn=rnn, mlp=turned), horizon=9)
    assert not torch.equal(after(rule), moved)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("final_mix_layer.weight", (6, 30)),
        ("mix_layer2.weight", (6, 30)),
        ("lstm.linear.weight", (24, 12)),
        ("rnn_to_controls.weight", (7, 6)),
        ("step_size.weight", (1, 6)),
        ("lstm_init_state.0", (1, 6)),
        ("lstm_init_state.1", (1, 6)),
        ("input_weights_", (7, 4, 30)),
        ("output_weights_", (7, 3, 4)),
        ("hidden_bias_.0", (7, 4)),
        ("ff_mod_stack/~/w0__3", (7, 3, 4)),
        ("ff_mod_stack/~/w2", (7, 4, 3)),
        ("rnn_params/linear_2/w", (30, 6)),
        ("rnn_params/rnn/linear/w", (12, 24)),
        ("rnn_params/rnn_to_controls/w", (6, 7)),
    ],
)
def test_what_is_turned_about_is_refused(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    of = Published()
    rnn, mlp = of.pylo()
    for file in (rnn, mlp, of.file):
        if name in file:
            file[name] = file[name].mT.contiguous()
    files = {"params": of.file} if "/" in name else {"rnn": rnn, "mlp": mlp}
    where = next(k for k, file in files.items() if name in file)
    came = (*shape[:-2], shape[-1], shape[-2])
    assert refusal(*saved(tmp_path, **files)) == (
        f"expected the weights of VeLO in {where}.safetensors, with {name} of shape {shape}, but "
        f"got {came}. Try the arrays as they were published: none turned, cut, or of another "
        "training."
    )


def test_sizes_that_cannot_be_told_are_expected_as_published(tmp_path: Path) -> None:
    of = Published()
    for shape in ((4,), (0, 4)):
        of.file["ff_mod_stack/~/b0"] = torch.zeros(shape)
        assert f"~/b0 of shape (256, 4), but got {shape}. Try" in refusal(of.save(tmp_path))
    of = Published()
    of.file["lstm_init_state/hidden"] = torch.zeros(())
    assert "hidden of shape (1, 512), but got (). Try" in refusal(of.save(tmp_path))
    of = Published(29)
    assert "linear_2/w of shape (30, 6), but got (29, 6). Try" in refusal(of.save(tmp_path))
    of.file["rnn_params/linear_2/w"] = torch.zeros(31)
    assert "linear_2/w of shape (30, 6), but got (31,). Try" in refusal(of.save(tmp_path))


def test_larger_perceptrons_are_refused(tmp_path: Path) -> None:
    rnn, mlp = Published().pylo()
    mlp["hidden_weights_.1"] = mlp["hidden_weights_.0"].clone()
    told = refusal(*saved(tmp_path, rnn=rnn, mlp=mlp))
    assert "two hidden layers, but got hidden_weights_.1 too, of larger ones. Try those" in told
    for name in ("w0__14", "w3"):
        of = Published()
        of.file[f"ff_mod_stack/~/{name}"] = torch.zeros(7, 4, 4)
        assert f"but got ff_mod_stack/~/{name} too" in refusal(of.save(tmp_path))


def test_other_files_are_refused(tmp_path: Path) -> None:
    of = Published()
    rnn, mlp = of.pylo()
    params, first, second = saved(tmp_path, params=of.file, rnn=rnn, mlp=mlp)
    both = "These are names of PyLO's: try its two files, load_velo(rnn, mlp, horizon=...)."
    assert refusal(first).endswith(both)
    assert refusal(second) == (
        "expected the weights of VeLO in mlp.safetensors, with ff_mod_stack/~/w0__0, "
        "ff_mod_stack/~/w0__1, ff_mod_stack/~/w0__2 and 28 more among them, but got hidden_bias.0, "
        f"hidden_bias_.0, hidden_weights.0 and 9 more. {both}"
    )
    assert refusal(second, first).endswith(
        "VeLO_RNN as the first file and its VeLO_MLP as the second."
    )
    assert refusal(first, first).endswith(
        "VeLO_RNN as the first file and its VeLO_MLP as the second."
    )
    assert refusal(params, second).endswith("authors' one file: try it alone, without mlp.")
    own = "Get what its authors published, and write it as safetensors."
    del of.file["rnn_params/rnn_to_controls/w"]
    told = refusal(of.save(tmp_path))
    assert "with rnn_params/rnn_to_controls/w among them, but got" in told
    assert told.endswith(own)
    for arrays, came in (({"a": torch.zeros(2)}, "a"), ({}, "no arrays")):
        assert refusal(*saved(tmp_path, other=arrays)).endswith(f", but got {came}. {own}")
    mixed = Published().checkpoint() | {"loss": torch.zeros(2)}
    assert "but got loss, params/ff_mod_stack/~/b0, " in refusal(*saved(tmp_path, mixed=mixed))
    with pytest.raises(InputError, match="but .*nowhere is none that can be read"):
        load_velo(first, tmp_path / "nowhere", horizon=9)
    with pytest.raises(InputError, match=r"but got 7 perceptrons\. Try load_velo"):
        load_celo(params, horizon=9)


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
