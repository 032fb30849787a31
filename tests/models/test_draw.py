"""DRAW beside its equations in NumPy."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from attractor.cells import CELLS, recurrent_dropout
from attractor.errors import InputError
from attractor.models import DRAW
from attractor.models.attention_window import window

Array = Any


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def filters(parameters: Array, n: int, height: int, width: int) -> tuple[Array, Array, float]:
    """Equations 19 to 26 of the paper, for one sample."""
    gx, gy, log_variance, log_stride, log_gamma = parameters
    gx, gy = (width + 1) / 2 * (gx + 1), (height + 1) / 2 * (gy + 1)
    stride = (max(width, height) - 1) / (n - 1) * np.exp(log_stride)
    columns, rows = np.zeros((n, width)), np.zeros((n, height))
    for i in range(1, n + 1):
        shift = (i - n / 2 - 0.5) * stride
        for a in range(1, width + 1):
            columns[i - 1, a - 1] = np.exp(-((a - gx - shift) ** 2) / (2 * np.exp(log_variance)))
        for b in range(1, height + 1):
            rows[i - 1, b - 1] = np.exp(-((b - gy - shift) ** 2) / (2 * np.exp(log_variance)))
    return (
        rows / rows.sum(1, keepdims=True),
        columns / columns.sum(1, keepdims=True),
        float(np.exp(log_gamma)),
    )


def lstm(x: Array, state: Array, cell: Any) -> tuple[Array, Array]:
    h, c = state
    w, u, b = (p.detach().numpy() for p in (cell.weight_ih, cell.weight_hh, cell.bias))
    i, f, g, o = np.split(w @ x + u @ h + b, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def reference(model: DRAW, x: Array, noise: Array) -> tuple[float, float]:
    """The two parts of the bound for one image, step by step."""

    def linear(layer: nn.Linear, value: Array) -> Array:
        return layer.weight.detach().numpy() @ value + layer.bias.detach().numpy()

    channels, height, width = model.shape
    hidden = model.decoder.hidden_size
    canvas, z_part = np.zeros_like(x), 0.0
    encoder, decoder = (np.zeros((2, hidden)) for _ in range(2))
    for epsilon in noise:
        error = x - sigmoid(canvas)
        if model.reading is None:
            seen = np.concatenate([x.ravel(), error.ravel()])
        else:
            n = model.read
            rows, columns, gamma = filters(linear(model.reading, decoder[0]), n, height, width)
            seen = np.concatenate(
                [
                    (gamma * rows @ part[channel] @ columns.T).ravel()
                    for part in (x, error)
                    for channel in range(channels)
                ]
            )
        encoder = np.stack(lstm(np.concatenate([seen, decoder[0]]), encoder, model.encoder))
        mean, log_deviation = np.split(linear(model.latent, encoder[0]), 2)
        variance = np.exp(log_deviation) ** 2
        z_part += 0.5 * (mean**2 + variance - np.log(variance)).sum() - 0.5 * len(mean)
        z = mean + np.exp(log_deviation) * epsilon
        decoder = np.stack(lstm(z, decoder, model.decoder))
        drawn = linear(model.writer, decoder[0])
        if model.writing is None:
            canvas = canvas + drawn.reshape(x.shape)
        else:
            n = model.write
            rows, columns, gamma = filters(linear(model.writing, decoder[0]), n, height, width)
            patch = drawn.reshape(channels, n, n)
            canvas = canvas + np.stack([rows.T @ one @ columns / gamma for one in patch])
    p = sigmoid(canvas)
    return -float((x * np.log(p) + (1 - x) * np.log(1 - p)).sum()), float(z_part)


@pytest.mark.parametrize(("read", "write"), [(2, 3), (0, 3), (4, 0), (0, 0)])
def test_the_bound_is_that_of_the_paper(read: int, write: int) -> None:
    model = DRAW((2, 5, 7), 6, 3, steps=4, read=read, write=write, generator=seeded()).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5, generator=seeded(parameter.numel()))
    x = torch.rand(3, 2, 5, 7, generator=seeded(1)).double()
    noise = torch.randn(4, 3, 3, generator=seeded(2)).double()
    image, latent = model.bound(x, noise)
    for row in range(3):
        expected = reference(model, x[row].numpy(), noise[:, row].numpy())
        assert float(image[row].detach()) == pytest.approx(expected[0], rel=1e-9)
        assert float(latent[row].detach()) == pytest.approx(expected[1], rel=1e-9)
    torch.testing.assert_close(model(x, noise), image + latent)


def test_a_window_in_the_middle_takes_the_middle() -> None:
    found = window(torch.tensor([[0, 0, -9, np.log(2 / 8), np.log(3)]]).float(), 3, 9, 9)
    image = torch.arange(81.0).view(1, 1, 9, 9)
    torch.testing.assert_close(found.read(image), 3 * image[..., 3:6, 3:6])
    patch = torch.ones(1, 1, 3, 3)
    canvas = found.write(patch)
    torch.testing.assert_close(canvas[..., 3:6, 3:6], patch / 3)
    assert float(canvas.sum()) == pytest.approx(3)


def test_a_narrow_window_far_outside_stays_finite() -> None:
    found = window(torch.tensor([[50.0, -50, -30, 3, 0]]), 4, 8, 8)
    assert found.rows.isfinite().all()
    assert found.columns.isfinite().all()


@pytest.mark.parametrize("cell", sorted(CELLS))
@pytest.mark.parametrize("place", ["encoder", "decoder"])
def test_any_cell_encodes_and_decodes(place: str, cell: str) -> None:
    chosen: dict[str, Any] = {place: cell}
    model = DRAW((1, 6, 6), 8, 3, steps=3, read=2, write=2, generator=seeded(), **chosen)
    model(torch.rand(4, 1, 6, 6, generator=seeded(1))).mean().backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            assert parameter.grad.isfinite().all(), name
    assert model.generate(2, generator=seeded()).shape == (3, 2, 1, 6, 6)


@pytest.mark.parametrize("cell", ["decaynet", "decaynet_gru"])
def test_a_cell_that_asks_for_the_length_is_told_the_steps(cell: str) -> None:
    told: Any = DRAW((1, 6, 6), 8, 3, steps=7, encoder=cell, decoder=cell, read=2, write=2)
    assert (told.encoder.length, told.decoder.length) == (7, 7)
    own: Any = DRAW((1, 6, 6), 8, 3, steps=7, encoder=cell, encoder_options={"length": 9})
    assert own.encoder.length == 9


@pytest.mark.parametrize("place", ["encoder", "decoder"])
@pytest.mark.parametrize(
    ("cell", "options", "named"),
    [
        ("dntm", {"discrete": True, "anneal": 5, "cells": 4}, "DNTMCell"),
        ("decaynet", {"length": None}, "DecayNetCell"),
        (recurrent_dropout("lstm", 0.2, per="sequence"), {}, "RecurrentDropoutCell"),
    ],
)
def test_cells_that_need_the_whole_sequence_are_refused(
    place: str, cell: Any, options: dict[str, Any], named: str
) -> None:
    chosen: Any = {place: cell, f"{place}_options": options}
    message = f"DRAW expects a cell that can read a sequence in pieces, but {named} .* Try another"
    with pytest.raises(InputError, match=message):
        DRAW((1, 6, 6), 8, 3, steps=3, **chosen)


@pytest.mark.parametrize(("low", "high"), [(-0.4, 1.0), (0.0, 2.0), (0.0, 255.0)])
def test_pixels_that_are_no_probabilities_are_refused(low: float, high: float) -> None:
    model = DRAW((1, 6, 6), 8, 3, steps=2, read=2, write=2, generator=seeded())
    x = torch.rand(4, 1, 6, 6, generator=seeded(1))
    x[1, 0, 2, 3], x[3, 0, 0, 0] = low, high
    message = f"pixels from 0 to 1, but got {low:.3g} to {high:.3g}\\. Try x / 255 for bytes"
    with pytest.raises(InputError, match=message):
        model(x)
    with pytest.raises(InputError, match="pixels from 0 to 1"):
        model.bound(x)
    assert (model(x.clamp(0, 1)) > 0).all()


def test_learners_under_vmap_are_not_looked_into() -> None:
    model = DRAW((1, 6, 6), 8, 3, steps=2, read=2, write=2, generator=seeded())
    x = torch.rand(2, 4, 1, 6, 6, generator=seeded(1))
    noise = torch.randn(2, 2, 4, 3, generator=seeded(2))
    together = torch.vmap(model)(x, noise)
    torch.testing.assert_close(together, torch.stack([*map(model, x, noise)]))


def test_generated_images_are_canvases_of_the_decoder_alone() -> None:
    model = DRAW((1, 6, 6), 8, 3, steps=3, read=2, write=0, generator=seeded())
    canvases = model.generate(4, generator=seeded(1))
    assert ((canvases > 0) & (canvases < 1)).all()
    state, canvas = model.decoder.initial_state(4), torch.zeros(4, 1, 6, 6)
    noise = seeded(1)
    for drawn in canvases:
        said, state = model.decoder(torch.randn(4, 3, generator=noise), state)
        canvas = canvas + model.writer(said).view(4, 1, 6, 6)
        torch.testing.assert_close(drawn, torch.sigmoid(canvas))
    assert torch.equal(canvases, model.generate(4, generator=seeded(1)))


def test_bad_images() -> None:
    with pytest.raises(InputError, match="expected images of channels, rows and columns"):
        DRAW((28, 28))
    with pytest.raises(InputError, match=r"but got the shape 28\. Try"):
        DRAW(28)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"rows and columns, but got the shape abc\. Try"):
        DRAW("abc", 8)  # type: ignore[arg-type]
    for wrong in ((1, 6.5, 6), (True, 6, 6), (1, "6", 6), (1, 6)):
        with pytest.raises(InputError, match="rows and columns, but got the shape"):
            DRAW(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"but got the shape \(1, 0, 6\)"):
        DRAW((1, 0, 6))
    with pytest.raises(InputError, match=r"expected images of shape \(1, 6, 6\)"):
        DRAW((1, 6, 6), 4, 2, steps=1)(torch.zeros(2, 1, 5, 6))


def test_pixels_that_are_no_numbers_are_refused() -> None:
    x = torch.rand(4, 1, 6, 6, generator=seeded(1))
    x[1, 0, 2, 3] = torch.nan
    with pytest.raises(InputError, match="pixels from 0 to 1, but got nan to nan"):
        DRAW((1, 6, 6), 4, 2, steps=1)(x)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 1, 6, 6).long(), r"a floating-point type, but got torch\.int64"),
        (torch.zeros(2, 1, 6, 6).bool(), r"a floating-point type, but got torch\.bool"),
        (torch.zeros(2, 1, 6, 6).double(), r"parameters, torch\.float32, but got torch\.float64"),
        ([[0.0]], r"images of shape \(1, 6, 6\), but got a list"),
    ],
)
def test_images_of_another_type_are_refused(x: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DRAW((1, 6, 6), 4, 2, steps=1)(x)


@pytest.mark.parametrize("shape", [(4, 2, 3), (3, 5, 3), (3, 2, 4), (3, 2), (3, 1, 3)])
def test_noise_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    model, x = DRAW((1, 6, 6), 4, 3, steps=3), torch.zeros(2, 1, 6, 6)
    message = rf"noise \(steps, batch, latent_size\) of the shape \(3, 2, 3\), but got {shape}"
    with pytest.raises(InputError, match=message.replace(f"{shape}", re.escape(f"{shape}"))):
        model(x, torch.zeros(shape))
    with pytest.raises(InputError, match=r"parameters, torch\.float32, but got torch\.float64"):
        model(x, torch.zeros(3, 2, 3).double())
    with pytest.raises(InputError, match=r"but got a float\. Try noise=None"):
        model(x, 0.0)


def test_a_number_of_images_is_a_whole_one() -> None:
    model = DRAW((1, 6, 6), 4, 2, steps=1)
    assert model.generate(0).shape == (1, 0, 1, 6, 6)
    with pytest.raises(InputError, match="expected count to be at least 0, but got -1"):
        model.generate(-1)


def test_options_that_a_cell_lacks_are_named() -> None:
    with pytest.raises(InputError, match="option of LSTMCell .* but got 'foo'"):
        DRAW((1, 6, 6), 4, 2, steps=1, decoder_options={"foo": 1})
    with pytest.raises(InputError, match="option of NRUCell .* Did you mean 'heads'"):
        DRAW((1, 6, 6), 4, 2, steps=1, encoder="nru", encoder_options={"head": 1})


def test_what_reads_the_cells_starts_evenly_within_the_root_of_their_units() -> None:
    model = DRAW((1, 12, 12), 64, 40, steps=1, read=4, write=0, generator=seeded())
    assert model.reading is not None
    for linear in (model.latent, model.writer, model.reading):
        drawn = linear.weight.detach()
        assert 0.95 / 8 < float(drawn.abs().max()) <= 1 / 8
        assert float(drawn.std()) == pytest.approx(1 / 8 / 3**0.5, rel=0.1)
        assert not linear.bias.any()
