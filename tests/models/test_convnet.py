"""The small convolutional network against NumPy."""

import numpy as np
import pytest
import torch

from attractor.errors import InputError
from attractor.models import ConvNet
from models.images import Array, convolve, normalise, pool, relu
from models.learners import check_learners_at_once


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weights(model: torch.nn.Module) -> dict[str, Array]:
    return {name: p.detach().numpy() for name, p in model.named_parameters()}


def test_it_is_its_equation() -> None:
    # sides that are no power of two, so that pooling meets odd borders
    model = ConvNet(
        (2, 13, 9), 4, channels=(3, 5), hidden_size=6, kernel_size=3, dtype=torch.float64
    )
    for p in model.parameters():
        torch.nn.init.normal_(p, generator=generator())
    x = torch.randn(7, 2, 13, 9, dtype=torch.float64, generator=generator(1))
    w, h = weights(model), x.numpy()
    for n in range(2):
        h = convolve(h, w[f"convolutions.{n}.weight"])
        h = pool(relu(normalise(h, w[f"norms.{n}.weight"], w[f"norms.{n}.bias"])))
    assert h.shape == (7, 5, 4, 3)
    h = h.reshape(7, -1) @ w["hidden.weight"].T + w["hidden.bias"]
    h = relu(normalise(h, w["hidden_norm.weight"], w["hidden_norm.bias"]))
    expected = h @ w["readout.weight"].T + w["readout.bias"]
    np.testing.assert_allclose(model(x).detach().numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28)])
def test_every_layer_has_its_size(shape: tuple[int, int, int]) -> None:
    sizes = [p.numel() for p in ConvNet(shape).parameters()]
    convolutions = [shape[0] * 16 * 25, 16 * 16 * 25, 16 * 16 * 25]
    norms = [16] * 6
    assert sizes == [*convolutions, *norms, 16 * 4 * 4 * 32, 32, 32, 32, 32 * 10, 10]


def test_many_learners_go_at_once() -> None:
    models = [ConvNet((1, 12, 12), track=False, generator=generator(n)) for n in range(3)]
    x = torch.randn(3, 8, 1, 12, 12, generator=generator())
    check_learners_at_once(models, x, torch.randint(10, (3, 8), generator=generator()))


def test_evaluation_takes_running_statistics_or_those_of_the_batch() -> None:
    x = torch.randn(6, 3, 16, 16, generator=generator())
    for track in (True, False):
        model = ConvNet((3, 16, 16), track=track, generator=generator())
        seen = model(x)
        assert torch.equal(model.eval()(x), seen) != track
        assert bool(list(model.buffers())) == track


def test_the_generator_decides_all_weights() -> None:
    torch.manual_seed(0)
    first = ConvNet(generator=generator()).state_dict()
    torch.manual_seed(1)
    torch.testing.assert_close(dict(first), dict(ConvNet(generator=generator()).state_dict()))


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(InputError, match=r"kernels of odd size, but got .* kernel_size=4"):
        ConvNet(kernel_size=4)
    with pytest.raises(InputError, match=r"at least 1 .* shape=\(0, 32, 32\)"):
        ConvNet((0, 32, 32))


def test_images_of_another_size_are_refused_even_if_as_many_features_are_left() -> None:
    with pytest.raises(InputError, match=r"shape \(3, 32, 32\), but got \(3, 28, 28\)"):
        ConvNet((3, 32, 32))(torch.zeros(2, 3, 28, 28))
