"""DRAW: a network that draws an image step by step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.cells import Cell
from attractor.cells.base import check_type
from attractor.cells.init import uniform_
from attractor.cells.layer.options import cell_options, check_options, resolve
from attractor.cells.layer.segments import check_pieces
from attractor.checks import plain, whole
from attractor.errors import InputError
from attractor.models.attention_window import window


class DRAW(nn.Module):
    r"""Deep recurrent attentive writer: it draws an image onto a canvas, step by step.

    .. math::
        \hat x_t &= x - \sigma(c_{t-1}) \\
        r_t &= \mathrm{read}(x, \hat x_t, h^{dec}_{t-1}) \\
        h^{enc}_t &= \mathrm{enc}(h^{enc}_{t-1}, [r_t, h^{dec}_{t-1}]) \\
        z_t &\sim \mathcal N(\mu_t, \sigma_t^2), \quad
        [\mu_t, \ln \sigma_t] = W_z h^{enc}_t + b_z \\
        h^{dec}_t &= \mathrm{dec}(h^{dec}_{t-1}, z_t) \\
        c_t &= c_{t-1} + \mathrm{write}(h^{dec}_t)

    With attention, reading takes an N x N window of x and of :math:`\hat x_t`, and writing adds
    such a window (`attractor.models.attention_window`); without, both see all of the image. All
    channels share a window. The model gives the bound, in nats,

    .. math::
        -\ln p(x) \le -\ln \mathrm{Bernoulli}(x \mid \sigma(c_T)) +
        \tfrac12 \sum_{t=1}^T \sum_j (\mu_{tj}^2 + \sigma_{tj}^2 - \ln \sigma_{tj}^2 - 1)

    Args:
        shape: channels, rows and columns of an image.
        hidden_size: units of the encoder and of the decoder.
        latent_size: numbers in :math:`z_t`.
        steps: T.
        encoder: a key of ``CELLS`` or a `Cell` class; one that asks for the ``length`` of its
            sequences is told T.
        decoder: likewise; it may be another.
        read: rows and columns of the window that is read; 0 reads all, without attention.
        write: of the one that is written; 0 writes all.
        encoder_options: go to the encoder's cell.
        decoder_options: go to the decoder's.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, channels, rows, columns)`` from 0 to 1; the bound ``(batch,)``.

    Example:
        >>> model = DRAW((1, 8, 8), 16, 4, steps=3, decoder="ihc_lstm", read=2, write=3)
        >>> model(torch.rand(5, 1, 8, 8)).shape
        torch.Size([5])
        >>> model.generate(2).shape
        torch.Size([3, 2, 1, 8, 8])

    Departs from the paper: the start is not learnt, as section 2.1 has it: the first canvas and
    what the decoder said before it are zero, and the cells start from their own initial state.

    References:
        Gregor et al. (2015), DRAW: a recurrent neural network for image generation,
        arXiv:1502.04623, sections 2 and 3.
    """

    def __init__(
        self,
        shape: Sequence[int],
        hidden_size: int = 256,
        latent_size: int = 100,
        *,
        steps: int = 10,
        encoder: str | Callable[..., Cell[Any, Any]] = "lstm",
        decoder: str | Callable[..., Cell[Any, Any]] = "lstm",
        read: int = 5,
        write: int = 5,
        encoder_options: Mapping[str, Any] | None = None,
        decoder_options: Mapping[str, Any] | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        listed = isinstance(shape, Sequence) and not isinstance(shape, str)
        sizes = tuple(map(plain, shape)) if listed else ()
        whole_sizes = all(isinstance(one, int) and not isinstance(one, bool) for one in sizes)
        if len(sizes) != 3 or not whole_sizes or min(sizes) < 1:
            raise InputError(
                f"expected images of channels, rows and columns, but got the shape {shape}. "
                "Try (1, 28, 28)."
            )
        self.shape = sizes
        channels, height, width = self.shape
        self.latent_size = latent_size = whole("latent_size", latent_size, 1)
        self.steps = steps = whole("steps", steps, 1)
        self.read, self.write = read, write = whole("read", read, 0), whole("write", write, 0)
        patch = channels * (read**2 or height * width)
        own = _options(decoder, steps, decoder_options)
        self.decoder = resolve(decoder)(latent_size, hidden_size, generator=generator, **own)
        said = self.decoder.output_size
        own = _options(encoder, steps, encoder_options)
        self.encoder = resolve(encoder)(2 * patch + said, hidden_size, generator=generator, **own)
        check_pieces("DRAW", self, "another cell")
        written = channels * (write**2 or height * width)
        self.latent = _linear(self.encoder.output_size, 2 * latent_size, generator)
        self.writer = _linear(said, written, generator)
        self.reading = _linear(said, 5, generator) if read else None
        self.writing = _linear(said, 5, generator) if write else None

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """The bound for each image; `noise` ``(steps, batch, latent_size)`` is drawn by default."""
        reconstruction, divergence = self.bound(x, noise)
        return reconstruction + divergence

    def bound(self, x: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The two parts of the bound ``(batch,)``: of the image given the canvas, and of z."""
        if not isinstance(x, Tensor) or x.shape[1:] != self.shape:
            got = tuple(x.shape[1:]) if isinstance(x, Tensor) else f"a {type(x).__name__}"
            raise InputError(
                f"expected images of shape {self.shape}, but got {got}. "
                "Make the model for the images, or set side."
            )
        check_type(self, x)
        _check_pixels(x)
        drawn = (self.steps, len(x), self.latent_size)
        if noise is None:
            noise = torch.randn(drawn, dtype=x.dtype, device=x.device)
        elif not isinstance(noise, Tensor) or noise.shape != drawn:
            got = tuple(noise.shape) if isinstance(noise, Tensor) else f"a {type(noise).__name__}"
            raise InputError(
                f"expected noise (steps, batch, latent_size) of the shape {drawn}, but got {got}. "
                "Try noise=None, which draws it."
            )
        check_type(self, noise)
        canvas, divergence = torch.zeros_like(x), x.new_zeros(len(x))
        encoder, decoder = self.encoder.initial_state(len(x)), self.decoder.initial_state(len(x))
        said = x.new_zeros(len(x), self.decoder.output_size)
        for epsilon in noise:
            error = x - torch.sigmoid(canvas)
            glimpse = self._glimpse(x, error, said)
            seen, encoder = self.encoder(torch.cat([glimpse, said], 1), encoder)
            mean, log_deviation = self.latent(seen).chunk(2, -1)
            z = mean + log_deviation.exp() * epsilon
            squares = mean.square() + (2 * log_deviation).exp() - 2 * log_deviation - 1
            divergence = divergence + squares.sum(1) / 2
            said, decoder = self.decoder(z, decoder)
            canvas = canvas + self._stroke(said)
        entropy = F.binary_cross_entropy_with_logits(canvas, x, reduction="none")
        return entropy.flatten(1).sum(1), divergence

    @torch.no_grad()
    def generate(self, count: int, *, generator: Generator | None = None) -> Tensor:
        """Images from noise alone, as they are after each step.

        Shape:
            ``(steps, count, channels, rows, columns)`` from 0 to 1.
        """
        count, like = whole("count", count, 0), self.writer.weight
        decoder = self.decoder.initial_state(count)
        canvas, canvases = like.new_zeros(count, *self.shape), []
        for _ in range(self.steps):
            z = torch.randn(count, self.latent_size, generator=generator).to(like)
            said, decoder = self.decoder(z, decoder)
            canvas = canvas + self._stroke(said)
            canvases.append(torch.sigmoid(canvas))
        return torch.stack(canvases)

    def _glimpse(self, x: Tensor, error: Tensor, said: Tensor) -> Tensor:
        """What is read of an image and of what is still wrong ``(batch, features)``."""
        if self.reading is None:
            return torch.cat([x.flatten(1), error.flatten(1)], 1)
        view = window(self.reading(said), self.read, *self.shape[1:])
        return torch.cat([view.read(x).flatten(1), view.read(error).flatten(1)], 1)

    def _stroke(self, said: Tensor) -> Tensor:
        """What is added to the canvas."""
        drawn: Tensor = self.writer(said)
        if self.writing is None:
            return drawn.view(-1, *self.shape)
        view = window(self.writing(said), self.write, *self.shape[1:])
        return view.write(drawn.view(-1, self.shape[0], self.write, self.write))


def _options(cell: Any, steps: int, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of a cell, with the length of its sequences if it asks for that."""
    make = resolve(cell)
    known = {"length": steps} if "length" in cell_options(make) else {}
    check_options(make, given or {})
    return {**known, **(given or {})}


def _check_pixels(x: Tensor) -> None:
    """Refuse what is no probability, of which the bound would say nothing, where x can be seen."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return
    low, high = (float(end) for end in x.aminmax()) if x.numel() else (0.0, 0.0)
    if not (low >= 0 and high <= 1):  # as a NaN is neither
        raise InputError(
            f"expected pixels from 0 to 1, but got {low:.3g} to {high:.3g}. Try x / 255 for "
            "bytes, and leave normalise out."
        )


def _linear(inputs: int, outputs: int, generator: Generator | None) -> nn.Linear:
    linear = nn.Linear(inputs, outputs)
    uniform_(linear.weight, inputs**-0.5, generator)
    nn.init.zeros_(linear.bias)
    return linear
