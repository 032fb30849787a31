"""Residual networks: a block against NumPy, sizes against those published."""

import numpy as np
import pytest
import torch
from torch import nn

from attractor.errors import InputError
from attractor.models import BasicBlock, ResNet
from attractor.models.resnet import Shortcut
from models.images import Array, convolve, normalise, relu
from models.learners import check_learners_at_once


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("inputs", "stride", "shortcut"),
    [(5, 1, "pad"), (5, 1, "project"), (3, 2, "pad"), (3, 2, "project"), (3, 1, "project")],
)
def test_a_block_is_its_equation(inputs: int, stride: int, shortcut: Shortcut) -> None:
    block = BasicBlock(inputs, 5, stride=stride, shortcut=shortcut, dtype=torch.float64)
    for p in block.parameters():
        nn.init.normal_(p, generator=generator())
    x = torch.randn(4, inputs, 6, 7, dtype=torch.float64, generator=generator(1))
    w: dict[str, Array] = {name: p.detach().numpy() for name, p in block.named_parameters()}
    h = convolve(x.numpy(), w["conv1.weight"], stride)
    h = relu(normalise(h, w["bn1.weight"], w["bn1.bias"]))
    h = normalise(convolve(h, w["conv2.weight"]), w["bn2.weight"], w["bn2.bias"])
    around = x.numpy()
    if inputs != 5 and shortcut == "pad":
        around = np.zeros_like(h)
        around[:, :inputs] = x.numpy()[:, :, ::stride, ::stride]
    elif inputs != 5:
        around = convolve(x.numpy(), w["downsample.0.weight"], stride)
        around = normalise(around, w["downsample.1.weight"], w["downsample.1.bias"])
    np.testing.assert_allclose(block(x).detach().numpy(), relu(h + around), atol=1e-10)


@pytest.mark.parametrize(
    ("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)]
)
def test_networks_for_cifar_have_the_sizes_of_table_6(depth: int, millions: float) -> None:
    digits = len(str(millions).split(".")[1])
    assert round(count(ResNet(depth, device="meta")) / 1e6, digits) == millions


@pytest.mark.parametrize(("depth", "published"), [(18, 11_689_512), (34, 21_797_672)])
def test_networks_for_photographs_have_torchvisions_sizes(depth: int, published: int) -> None:
    assert count(ResNet(depth, 1000, stem="large", device="meta")) == published


def test_resnet_34_for_cifar_has_21_million_parameters() -> None:
    model = ResNet(34, device="meta")
    blocks, inputs = 0, 64
    for stage, number in enumerate((3, 4, 6, 3)):
        outputs = 64 * 2**stage
        for _ in range(number):
            blocks += 9 * outputs * (inputs + outputs) + 4 * outputs
            blocks += (inputs + 2) * outputs if inputs != outputs else 0
            inputs = outputs
    assert count(model) == (3 * 9 * 64 + 128) + blocks + (512 * 10 + 10) == 21_282_122
    assert sum(isinstance(part, BasicBlock) for part in model.modules()) == 16


@pytest.mark.parametrize("depth", [18, 20, 34, 56])
def test_the_depth_counts_convolutions_and_the_last_layer(depth: int) -> None:
    model = ResNet(depth, device="meta")
    main = [name for name, part in model.named_modules() if isinstance(part, nn.Conv2d | nn.Linear)]
    assert sum("downsample" not in name for name in main) == depth


def test_names_are_torchvisions() -> None:
    names = list(ResNet(18, 1000, stem="large", device="meta").state_dict())
    assert len(names) == 122
    assert names[:2] == ["conv1.weight", "bn1.weight"]
    assert names[-2:] == ["fc.weight", "fc.bias"]
    for name in ("layer1.0.conv1.weight", "layer2.0.downsample.0.weight", "layer4.1.bn2.bias"):
        assert name in names
    assert "layer2.0.downsample.1.running_var" in names


@pytest.mark.parametrize(
    ("depth", "sides", "width"), [(20, [32, 16, 8], 64), (18, [32, 16, 8, 4], 512)]
)
def test_each_stage_halves_the_image(depth: int, sides: list[int], width: int) -> None:
    model = ResNet(depth, generator=generator())
    seen: list[int] = []
    for name in model.stages:
        model.get_submodule(name).register_forward_hook(
            lambda _, inputs, output: seen.append(output.shape[-1])
        )
    features = model.features(torch.randn(2, 3, 32, 32, generator=generator()))
    assert seen == sides
    assert features.shape == (2, width) == (2, model.feature_size)


def test_the_large_stem_divides_the_image_by_four() -> None:
    model = ResNet(18, 5, channels=1, stem="large", generator=generator())
    shapes: list[torch.Size] = []
    model.get_submodule("layer1").register_forward_pre_hook(
        lambda _, inputs: shapes.append(inputs[0].shape)
    )
    assert model(torch.zeros(2, 1, 64, 64)).shape == (2, 5)
    assert shapes == [(2, 64, 16, 16)]


def test_the_answer_is_a_linear_function_of_the_features() -> None:
    model = ResNet(20, 7, generator=generator()).eval()
    x = torch.randn(3, 3, 16, 16, generator=generator())
    expected = model.features(x) @ model.fc.weight.T + model.fc.bias
    torch.testing.assert_close(model(x), expected)


def test_many_learners_go_at_once() -> None:
    models = [ResNet(20, track=False, generator=generator(n)).double() for n in range(2)]
    x = torch.randn(2, 4, 3, 16, 16, generator=generator(), dtype=torch.float64)
    check_learners_at_once(models, x, torch.randint(10, (2, 4), generator=generator()))


def test_evaluation_takes_running_statistics_or_those_of_the_batch() -> None:
    x = torch.randn(4, 3, 16, 16, generator=generator())
    for track in (True, False):
        model = ResNet(20, track=track, generator=generator())
        seen = model(x)
        assert torch.equal(model.eval()(x), seen) != track
        assert bool(list(model.buffers())) == track


def test_weights_come_from_the_generator_with_hes_variance() -> None:
    torch.manual_seed(0)
    first = ResNet(20, generator=generator()).state_dict()
    torch.manual_seed(1)
    torch.testing.assert_close(dict(first), dict(ResNet(20, generator=generator()).state_dict()))
    std = first["layer3.2.conv2.weight"].std().item()
    assert std == pytest.approx((2 / (64 * 9)) ** 0.5, rel=0.02)


def test_signals_keep_their_size_through_a_deep_network() -> None:
    model = ResNet(34, generator=generator())
    features = model.features(torch.randn(4, 3, 32, 32, generator=generator()))
    assert 0.1 < features.std().item() < 10


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="known depth of a ResNet .* but got 50"):
        ResNet(50)
    with pytest.raises(InputError, match=r"known stem \(large, small\), but got 'tiny'"):
        ResNet(20, stem="tiny")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 1 class and 1 channel, but got classes=0"):
        ResNet(20, 0)
