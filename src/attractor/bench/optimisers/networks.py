"""Networks of torch's own layers, which no rule that comes with attractor was trained on."""

from torch import Tensor, nn


class Rows(nn.Module):
    """An ``nn.LSTM`` over the rows of a digit, and an answer at the last.

    Shape:
        x ``(batch, 8, 8)``; the answer ``(batch, 10)``.

    Example:
        >>> import torch
        >>> Rows()(torch.zeros(2, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(8, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.out(self.lstm(x)[0][:, -1])
        return y


class Characters(nn.Module):
    """A small transformer that says the next symbol, reading from left to right.

    Args:
        symbols: that are told apart.
        length: of a piece, at most.
        width: of embeddings and layers.

    Shape:
        x ``(batch, time)``, numbers below `symbols`; the answer ``(batch, time, symbols)``.

    Example:
        >>> import torch
        >>> Characters(50, 8)(torch.zeros(2, 5, dtype=torch.long)).shape
        torch.Size([2, 5, 50])
    """

    def __init__(self, symbols: int, length: int, width: int = 64) -> None:
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 4, 128, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, symbols)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        self.register_buffer("mask", mask, persistent=False)
        self.mask: Tensor

    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[1]
        h = self.symbols(x) + self.places.weight[:steps]
        y: Tensor = self.out(self.layers(h, mask=self.mask[:steps, :steps], is_causal=True))
        return y


def convolutions() -> nn.Module:
    """Two layers of filters and a linear one, for images of 28 by 28.

    Example:
        >>> import torch
        >>> convolutions()(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 36, 10),
    )
