r"""Gradients of many tasks or samples at once.

In a network whose parameters are those of linear layers, the gradient of a sample's loss in a layer
is :math:`\delta_i h_i^\top`: of what the layer put out and what it read. One pass forwards and one
backwards, down to the :math:`\delta` and no further, then give the gradient of every group of
samples (:math:`\sum_{i \in u} \delta_i h_i^\top`) or the mean square of every sample's. Other
networks take a pass per group or per sample.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attractor.continual.flat import Flat
from attractor.continual.rows import Rows, products, shares, sums
from attractor.continual.strategies.base import Loss
from attractor.tasks.streams import Samples


class GroupGradients:
    """Gradients of a model's loss, one for each group of samples or each sample.

    Args:
        model: any network; fast if all its parameters are in ``nn.Linear`` layers that read
            vectors, each once. The first time, the fast way is held against autograd, and left if
            they differ.

    Example:
        >>> from attractor.continual.strategies.base import cross_entropy
        >>> model = nn.Linear(3, 2)
        >>> x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
        >>> batch = Samples(x, y, torch.zeros(4))
        >>> GroupGradients(model).of_groups(batch, [2, 2], cross_entropy).matrix().shape
        torch.Size([2, 8])
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.flat = Flat(model)
        self._layers = _linear_layers(model)
        self._verified = False

    def of_groups(self, batch: Samples, sizes: Sequence[int], base: Loss) -> Rows:
        """The gradient of each group's mean loss.

        Args:
            batch: all samples, group after group.
            sizes: how many samples each group has.
            base: the loss.
        """
        batch = weighted(batch, shares(sizes))
        if self._fast(batch, sizes, base):
            return self._at_once(batch, sizes, base)
        return self._one_by_one(batch, sizes, base)

    def squares(self, batch: Samples, base: Loss) -> Tensor:
        """The mean over samples of the squared gradient of each one's loss.

        Shape:
            ``(parameters,)``.
        """
        batch = weighted(batch, torch.ones(len(batch)))
        if self._fast(batch[:8], [1] * min(8, len(batch)), base):
            reads, deltas = self._record(batch, base)
            squares = [None if delta is None else delta.square() for delta in deltas]
            parts = self._parts([h.square() for h in reads], squares, [len(batch)])
            total = torch.cat(parts, 1)[0]
        else:
            total = torch.zeros_like(self.flat.values())
            for row in range(len(batch)):
                one = self._one_by_one(batch[row : row + 1], [1], base)
                total += one.matrix()[0].square()
        return total / len(batch)

    def _fast(self, batch: Samples, sizes: Sequence[int], base: Loss) -> bool:
        if self._layers is not None and not self._verified:
            self._verify(batch, sizes, base)
        return self._layers is not None

    def _at_once(self, batch: Samples, sizes: Sequence[int], base: Loss) -> Rows:
        return Rows(self._parts(*self._record(batch, base), sizes))

    def _record(self, batch: Samples, base: Loss) -> tuple[list[Tensor], list[Tensor | None]]:
        assert self._layers is not None
        with _Recording(self._layers) as recording:
            loss = base(self.model, batch)
        return recording.reads(), recording.deltas(loss)

    def _parts(
        self, reads: Sequence[Tensor], deltas: Sequence[Tensor | None], sizes: Sequence[int]
    ) -> list[Tensor]:
        """Each group's sum of products, layer by layer."""
        assert self._layers is not None
        found: dict[int, Tensor] = {}
        for layer, h, delta in zip(self._layers, reads, deltas, strict=True):
            if delta is not None:
                found[id(layer.weight)] = products(delta, h, sizes).flatten(1)
                if layer.bias is not None:
                    found[id(layer.bias)] = sums(delta, sizes)
        return self._in_order(found, len(sizes))

    def _one_by_one(self, batch: Samples, sizes: Sequence[int], base: Loss) -> Rows:
        trained = [p for p in self.flat.parameters if p.requires_grad]
        groups = [batch[slice(*span)] for span in pairwise(accumulate(sizes, initial=0))]
        each = [
            torch.autograd.grad(base(self.model, some), trained, materialize_grads=True)
            for some in groups
        ]
        stacked = [torch.stack(rows).flatten(1) for rows in zip(*each, strict=True)]
        found = dict(zip(map(id, trained), stacked, strict=True))
        return Rows(self._in_order(found, len(sizes)))

    def _in_order(self, found: dict[int, Tensor], groups: int) -> list[Tensor]:
        """The columns of all parameters; zero for frozen ones."""
        return [
            found[id(p)] if id(p) in found else p.new_zeros(groups, p.numel())
            for p in self.flat.parameters
        ]

    def _verify(self, batch: Samples, sizes: Sequence[int], base: Loss) -> None:
        """Leave the fast way if it gives something else than autograd does.

        So it is if the model uses a layer's weights elsewhere too, or the loss knows no weights.
        """
        self._verified = True
        training = self.model.training
        self.model.eval()  # without dropout
        try:
            fast = self._at_once(batch, sizes, base).matrix().sum(0)
        except _UnusualError:
            self._layers = None
        else:
            slow = self._one_by_one(batch, sizes, base).matrix().sum(0)
            scale = float(slow.abs().max())
            if not torch.allclose(fast, slow, rtol=1e-3, atol=1e-4 * scale):
                self._layers = None
        self.model.train(training)


def weighted(batch: Samples, weight: Tensor) -> Samples:
    """The samples with these shares in the loss."""
    return Samples(batch.x, batch.y, batch.task, batch.lengths, weight.to(batch.x.device))


class _UnusualError(Exception):
    """A layer was not used once, on vectors."""


class _Recording:
    """Linear layers that note what they read and put out while this is open."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = layers
        self._found: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> "_Recording":
        self._hooks = [layer.register_forward_hook(self._note) for layer in self.layers]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _note(self, layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if id(layer) in self._found or inputs[0].ndim != 2:
            raise _UnusualError
        self._found[id(layer)] = (inputs[0].detach(), output)

    def reads(self) -> list[Tensor]:
        """What each layer read."""
        if len(self._found) != len(self.layers):
            raise _UnusualError
        return [self._found[id(layer)][0] for layer in self.layers]

    def deltas(self, loss: Tensor) -> list[Tensor | None]:
        """The gradient of the loss in each layer's output, if the layer is trained."""
        trained = [layer for layer in self.layers if layer.weight.requires_grad]
        wanted = [self._found[id(layer)][1] for layer in trained]
        found = torch.autograd.grad(loss, wanted, materialize_grads=True) if wanted else ()
        of = dict(zip(map(id, trained), found, strict=True))
        return [of.get(id(layer)) for layer in self.layers]


def _linear_layers(model: nn.Module) -> list[nn.Linear] | None:
    """The layers that hold all of a model's parameters, if they are linear and mix no samples."""
    layers = [one for one in model.modules() if type(one) is nn.Linear]
    held = [p for layer in layers for p in layer.parameters()]
    every = list(model.parameters())
    plain = all(
        layer.bias is None or layer.bias.requires_grad == layer.weight.requires_grad
        for layer in layers
    )
    mixing = any(isinstance(one, _BatchNorm) for one in model.modules())
    distinct = len({id(p) for p in held}) == len(held) == len(every)
    return layers if plain and distinct and not mixing and every else None
