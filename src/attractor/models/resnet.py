"""Residual networks of basic blocks: ResNet-20 and its kin for CIFAR, ResNet-18 and ResNet-34."""

from typing import Any, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from attractor.errors import InputError, unknown
from attractor.models.convnet import convolution
from attractor.models.mlp import linear

Shortcut = Literal["pad", "project"]
Stem = Literal["small", "large"]


class Plan(NamedTuple):
    """Blocks of each stage, channels of the first, and how a shortcut reaches the next."""

    blocks: tuple[int, ...]
    width: int
    shortcut: Shortcut


PLANS = {
    18: Plan((2, 2, 2, 2), 64, "project"),
    34: Plan((3, 4, 6, 3), 64, "project"),
    20: Plan((3, 3, 3), 16, "pad"),
    32: Plan((5, 5, 5), 16, "pad"),
    44: Plan((7, 7, 7), 16, "pad"),
    56: Plan((9, 9, 9), 16, "pad"),
    110: Plan((18, 18, 18), 16, "pad"),
}
"""By depth: the first two of He et al.'s table 1, the others of section 4.2."""


class Pad(nn.Module):
    """A shortcut without weights: every `stride`-th pixel, and zeros in the new channels."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.channels, self.stride = channels, stride

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, :, :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, 0, self.channels - x.shape[1]))


class BasicBlock(nn.Module):
    r"""Two convolutions, and a shortcut around them.

    .. math::
        y = \mathrm{relu}(\mathrm{BN}(K_2 * \mathrm{relu}(\mathrm{BN}(K_1 * x))) + s(x))

    The shortcut :math:`s` is the identity where the shapes agree. Where they do not, ``"pad"``
    takes every other pixel and fills the new channels with zeros (He et al.'s option A), and
    ``"project"`` is a 1 by 1 convolution with batch norm (option B).

    Args:
        inputs: channels in.
        outputs: channels out.
        stride: of the first convolution.
        shortcut: ``"pad"`` or ``"project"``.
        track: keep running statistics in batch norm.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, inputs, rows, columns)``; y ``(batch, outputs, rows / stride, columns /
        stride)``.

    Example:
        >>> BasicBlock(16, 32, stride=2)(torch.zeros(2, 16, 8, 8)).shape
        torch.Size([2, 32, 4, 4])

    References:
        He et al. (2016), Deep residual learning for image recognition, arXiv:1512.03385, sections
        3.2 and 3.3.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        stride: int = 1,
        shortcut: Shortcut = "project",
        track: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        kind: dict[str, Any] = {"device": device, "dtype": dtype}

        def convolve(channels: int, kernel_size: int, stride: int) -> nn.Conv2d:
            return convolution(
                channels, outputs, kernel_size, stride=stride, generator=generator, **kind
            )

        def norm() -> nn.BatchNorm2d:
            return nn.BatchNorm2d(outputs, track_running_stats=track, **kind)

        self.conv1, self.bn1 = convolve(inputs, 3, stride), norm()
        self.conv2, self.bn2 = convolve(outputs, 3, 1), norm()
        self.downsample: nn.Module
        if stride == 1 and inputs == outputs:
            self.downsample = nn.Identity()
        elif shortcut == "pad":
            self.downsample = Pad(outputs, stride)
        else:
            self.downsample = nn.Sequential(convolve(inputs, 1, stride), norm())

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(h)) + self.downsample(x))


class ResNet(nn.Module):
    """Residual network: a first convolution, stages of basic blocks, the mean, and the answer.

    Each stage but the first halves rows and columns and doubles the channels. Parameters and
    buffers have the names and shapes of torchvision's, so its weights for ResNet-18 and ResNet-34
    load into ``ResNet(18, 1000, stem="large")`` and ``ResNet(34, 1000, stem="large")``.

    Args:
        depth: 18 or 34; 20, 32, 44, 56 or 110, the narrow networks for CIFAR.
        classes: numbers in the answer.
        channels: of an image.
        stem: ``"small"`` is a 3 by 3 convolution, for CIFAR; ``"large"`` one of 7 by 7 with stride
            2, and max pooling of 3 by 3 with stride 2, for photographs.
        track: keep running statistics for evaluation. Without, batch norm takes those of the batch
            in evaluation too; many learners at once under ``torch.func.vmap`` need that, as they
            cannot write to buffers.
        generator: draws the initial weights; ``None`` means torch's default generator.

    Shape:
        x ``(batch, channels, rows, columns)``; y ``(batch, classes)``; features ``(batch,
        feature_size)``: 512 for depths 18 and 34, else 64.

    Example:
        >>> model = ResNet(20)
        >>> model(torch.zeros(5, 3, 32, 32)).shape
        torch.Size([5, 10])
        >>> model.features(torch.zeros(5, 3, 32, 32)).shape
        torch.Size([5, 64])
        >>> sum(p.numel() for p in model.parameters())
        269722

    Departs from the paper: nothing. ResNet-34 with the small stem, of 21.3 million parameters, has
    the layers that Kuo et al. list for their learner on CIFAR-10.

    References:
        He et al. (2016), Deep residual learning for image recognition, arXiv:1512.03385; Kuo et al.
        (2020), An input residual connection for simplifying gated recurrent neural networks,
        section V-C.
    """

    def __init__(
        self,
        depth: int,
        classes: int = 10,
        *,
        channels: int = 3,
        stem: Stem = "small",
        track: bool = True,
        generator: Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if depth not in PLANS:
            raise unknown("depth of a ResNet", depth, map(str, PLANS))
        if stem not in get_args(Stem):
            raise unknown("stem", stem, get_args(Stem))
        if classes < 1 or channels < 1:
            raise InputError(
                "expected a ResNet of at least 1 class and 1 channel, but got "
                f"classes={classes}, channels={channels}. Try ResNet(20, classes=10, channels=3)."
            )
        plan = PLANS[depth]
        kind: dict[str, Any] = {"generator": generator, "device": device, "dtype": dtype}
        self.stem = stem
        kernel_size, stride = (3, 1) if stem == "small" else (7, 2)
        self.conv1 = convolution(channels, plan.width, kernel_size, stride=stride, **kind)
        self.bn1 = nn.BatchNorm2d(plan.width, track_running_stats=track, device=device, dtype=dtype)
        self.stages = [f"layer{n}" for n in range(1, len(plan.blocks) + 1)]
        inputs = plan.width
        for n, (name, blocks) in enumerate(zip(self.stages, plan.blocks, strict=True)):
            stage = nn.Sequential()
            for block in range(blocks):
                outputs, stride = plan.width * 2**n, 2 if n and not block else 1
                stage.append(
                    BasicBlock(
                        inputs, outputs, stride=stride, shortcut=plan.shortcut, track=track, **kind
                    )
                )
                inputs = outputs
            self.add_module(name, stage)
        self.feature_size = inputs
        self.fc = linear(inputs, classes, **kind)

    def features(self, x: Tensor) -> Tensor:
        """What the last stage sees, as means over the image: the input of the last layer."""
        h = torch.relu(self.bn1(self.conv1(x)))
        if self.stem == "large":
            h = F.max_pool2d(h, 3, stride=2, padding=1)
        for name in self.stages:
            h = self.get_submodule(name)(h)
        return h.mean((-2, -1))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc(self.features(x))
        return y
