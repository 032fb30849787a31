r"""Gradients of many tasks or samples at once.

In a network whose parameters are those of linear layers, the gradient of a sample's loss in a layer
is :math:`\delta_i h_i^\top`: of what the layer put out and what it read. One pass forwards and one
backwards, down to the :math:`\delta` and no further, then give the gradient of every group of
samples (:math:`\sum_{i \in u} \delta_i h_i^\top`) or the mean square of every sample's. Other
networks take a pass per group or per sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attractor.continual.base import Loss
from attractor.continual.flat import Flat
from attractor.tasks.streams import Samples


@dataclass(frozen=True)
class Rows:
    """A matrix with a gradient in each row, cut into columns, parameter by parameter.

    Args:
        parts: the columns of each parameter, in their order.

    Shape:
        each part ``(groups, entries)``; together they have as many columns as there are parameters.

    Example:
        >>> rows = Rows([torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])])
        >>> rows.gram()
        tensor([[2., 2.],
                [2., 5.]])
        >>> rows.combine(torch.tensor([1.0, 1.0]))
        tensor([3., 1., 1.])
    """

    parts: Sequence[Tensor]

    def matrix(self) -> Tensor:
        """The whole, as one tensor."""
        return torch.cat(list(self.parts), 1)

    def gram(self) -> Tensor:
        """The inner products of all pairs of rows."""
        return torch.stack([part @ part.T for part in self.parts]).sum(0)

    def dot(self, vector: Tensor) -> Tensor:
        """The inner product of each row with a vector."""
        return torch.stack([p @ v for p, v in zip(self.parts, self._cut(vector), strict=True)]).sum(
            0
        )

    def combine(self, factors: Tensor) -> Tensor:
        """The sum of the rows, each times a factor of its own."""
        return torch.cat([factors @ part for part in self.parts])

    def blend(self, factors: Tensor) -> Tensor:
        """The sum of the rows, each entry times a factor of its own, ``(groups, parameters)``."""
        pairs = zip(self.parts, self._cut(factors), strict=True)
        return torch.cat([(part * factor).sum(0) for part, factor in pairs])

    def _cut(self, columns: Tensor) -> tuple[Tensor, ...]:
        return torch.split(columns, [part.shape[1] for part in self.parts], dim=-1)


class GroupGradients:
    """Gradients of a model's loss, one for each group of samples or each sample.

    Args:
        model: any network; fast if all its parameters are in ``nn.Linear`` layers that read
            vectors, each once. The first time, the fast way is held against autograd, and left if
            they differ.

    Example:
        >>> from attractor.continual.base import cross_entropy
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
            return self._rows(*self._record(batch, base), sizes)
        return self._one_by_one(batch, sizes, base)

    def squares(self, batch: Samples, base: Loss) -> Tensor:
        """The mean over samples of the squared gradient of each one's loss.

        Shape:
            ``(parameters,)``.
        """
        batch = weighted(batch, torch.ones(len(batch)))
        if self._fast(batch, [1] * len(batch), base):
            reads, deltas = self._record(batch, base)
            squares = [None if delta is None else delta.square() for delta in deltas]
            total = self._rows([h.square() for h in reads], squares, [len(batch)]).matrix()[0]
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

    def _record(self, batch: Samples, base: Loss) -> tuple[list[Tensor], list[Tensor | None]]:
        assert self._layers is not None
        with _Recorded(self._layers) as record:
            loss = base(self.model, batch)
        return record.reads(), record.deltas(loss)

    def _rows(
        self, reads: Sequence[Tensor], deltas: Sequence[Tensor | None], sizes: Sequence[int]
    ) -> Rows:
        """Each group's sum of products, layer by layer."""
        assert self._layers is not None
        found: dict[int, Tensor] = {}
        for layer, h, delta in zip(self._layers, reads, deltas, strict=True):
            if delta is not None:
                found[id(layer.weight)] = products(delta, h, sizes).flatten(1)
                if layer.bias is not None:
                    found[id(layer.bias)] = sums(delta, sizes)
        return Rows([self._or_zero(found.get(id(p)), p, sizes) for p in self.flat.parameters])

    def _one_by_one(self, batch: Samples, sizes: Sequence[int], base: Loss) -> Rows:
        wanted = [p for p in self.flat.parameters if p.requires_grad]
        groups = [batch[slice(*span)] for span in pairwise(accumulate(sizes, initial=0))]
        each = [
            torch.autograd.grad(base(self.model, some), wanted, materialize_grads=True)
            for some in groups
        ]
        stacked = [torch.stack(rows).flatten(1) for rows in zip(*each, strict=True)]
        found = dict(zip(map(id, wanted), stacked, strict=True))
        return Rows([self._or_zero(found.get(id(p)), p, sizes) for p in self.flat.parameters])

    @staticmethod
    def _or_zero(found: Tensor | None, parameter: Tensor, sizes: Sequence[int]) -> Tensor:
        return parameter.new_zeros(len(sizes), parameter.numel()) if found is None else found

    def _verify(self, batch: Samples, sizes: Sequence[int], base: Loss) -> None:
        """Leave the fast way if the model uses a layer's weights elsewhere too, or twice."""
        self._verified = True
        state = torch.get_rng_state()  # for the same dropout in both
        try:
            fast = self._rows(*self._record(batch, base), sizes).matrix().sum(0)
        except _UnusualError:
            self._layers = None
            return
        finally:
            torch.set_rng_state(state)
        slow = self._one_by_one(batch, [len(batch)], base).matrix()[0]
        torch.set_rng_state(state)
        scale = float(slow.abs().max())
        if not torch.allclose(fast, slow, rtol=1e-3, atol=1e-4 * scale):
            self._layers = None


def products(delta: Tensor, h: Tensor, sizes: Sequence[int]) -> Tensor:
    r"""Of each group of rows, :math:`\sum_i \delta_i h_i^\top`.

    Shape:
        delta ``(samples, outputs)``, h ``(samples, inputs)``; ``(groups, outputs, inputs)``.

    Example:
        >>> products(torch.ones(3, 1), torch.tensor([[1.0], [2.0], [4.0]]), [1, 2]).flatten()
        tensor([1., 6.])
    """
    if len(set(sizes)) == 1:
        groups = (len(sizes), sizes[0], -1)
        return torch.bmm(delta.reshape(groups).transpose(1, 2), h.reshape(groups))
    pairs = zip(torch.split(delta, list(sizes)), torch.split(h, list(sizes)), strict=True)
    return torch.stack([d.T @ x for d, x in pairs])


def sums(delta: Tensor, sizes: Sequence[int]) -> Tensor:
    """The sum of each group of rows, ``(groups, outputs)``."""
    if len(set(sizes)) == 1:
        return delta.reshape(len(sizes), sizes[0], -1).sum(1)
    return torch.stack([some.sum(0) for some in torch.split(delta, list(sizes))])


def shares(sizes: Sequence[int]) -> Tensor:
    """What each sample counts if each group's loss is averaged on its own.

    Example:
        >>> shares([2, 1])
        tensor([0.5000, 0.5000, 1.0000], dtype=torch.float64)
    """
    if len(set(sizes)) == 1:
        return torch.full((sum(sizes),), 1 / sizes[0], dtype=torch.float64)
    counts = torch.tensor(sizes)
    return torch.repeat_interleave(1 / counts.double(), counts)


def weighted(batch: Samples, weight: Tensor) -> Samples:
    """The samples with these shares in the loss."""
    return Samples(batch.x, batch.y, batch.task, batch.lengths, weight.to(batch.x.device))


class _UnusualError(Exception):
    """A layer was not used once, on vectors."""


class _Recorded:
    """Linear layers that note what they read and put out while this is open."""

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = layers
        self._found: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> "_Recorded":
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
