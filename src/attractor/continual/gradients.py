r"""Gradients of many tasks or samples at once.

In a network whose parameters are those of linear layers, the gradient of a sample's loss in a layer
is :math:`\delta_i h_i^\top`: of what the layer put out and what it read. One pass forwards and one
backwards, down to the :math:`\delta` and no further, then give the gradient of every group of
samples (:math:`\sum_{i \in u} \delta_i h_i^\top`) or the mean square of every sample's. Other
networks, and losses that do not heed weights, take a pass per group or per sample.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attractor.continual.flat import Flat
from attractor.continual.recording import Recording, UnusualError
from attractor.continual.rows import GroupMatrix, products, shares, sums
from attractor.continual.strategies.base import Loss
from attractor.continual.weighting import PROBE, evaluating, groups, weighted
from attractor.tasks import Batch


class GroupGradients:
    """Gradients of a model's loss, one for each group of samples or each sample.

    Args:
        model: any network; fast if all its parameters are in ``nn.Linear`` layers that read
            vectors, each once, and the loss heeds the weights of samples. The fast way is held
            against autograd, row by row, when a loss is first met and whenever other parameters are
            frozen, and left if they differ.

    Example:
        >>> from attractor.continual.strategies.base import cross_entropy
        >>> model = nn.Linear(3, 2)
        >>> x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
        >>> batch = Batch(x, y, task=torch.zeros(4))
        >>> GroupGradients(model).of_groups(batch, [2, 2], cross_entropy).matrix().shape
        torch.Size([2, 8])
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.flat = Flat(model)
        self._layers = _linear_layers(model)
        self._verified: tuple[Loss, list[bool]] | None = None
        self._agrees = False

    def of_groups(self, batch: Batch, sizes: Sequence[int], base: Loss) -> GroupMatrix:
        """The gradient of each group's mean loss.

        Args:
            batch: all samples, group after group.
            sizes: how many samples each group has.
            base: the loss.
        """
        batch = weighted(batch, shares(sizes))
        recorded = self._record(batch, base) if self.is_fast(batch, base) else None
        if recorded is None:
            return self._one_by_one(batch, sizes, base)
        return GroupMatrix(self._parts(*recorded, sizes))

    def squares(self, batch: Batch, base: Loss) -> Tensor:
        """The mean over samples of the squared gradient of each one's loss.

        Shape:
            ``(parameters,)``.
        """
        return self.of_samples(batch, base, torch.square)

    def of_samples(self, batch: Batch, base: Loss, of: Callable[[Tensor], Tensor]) -> Tensor:
        """The mean over samples of a function of each one's gradient.

        Args:
            batch: the samples.
            base: the loss.
            of: such as `torch.abs`; with :math:`f(a b) = f(a) f(b)`.

        Shape:
            ``(parameters,)``.
        """
        batch = weighted(batch, torch.ones(len(batch)))
        recorded = self._record(batch, base) if self.is_fast(batch, base) else None
        if recorded is not None:
            reads, deltas = recorded
            sizes = [None if delta is None else of(delta) for delta in deltas]
            parts = self._parts([of(h) for h in reads], sizes, [len(batch)])
            total = torch.cat(parts, 1)[0]
        else:
            total = torch.zeros_like(self.flat.values())
            for row in range(len(batch)):
                one = self._one_by_one(batch[row : row + 1], [1], base)
                total += of(one.matrix()[0])
        return total / len(batch)

    def is_fast(self, batch: Batch, base: Loss) -> bool:
        """Whether all groups take one pass, tried on some samples if it is not known."""
        if self._layers is None or len(batch) < 2:
            return False
        trained = [p.requires_grad for p in self.flat.parameters]
        if self._verified is None or self._verified[0] != base or self._verified[1] != trained:
            agrees = self._verify(batch[:PROBE], base)
            if agrees is None:
                return False
            self._verified, self._agrees = (base, trained), agrees
        return self._agrees

    def _verify(self, batch: Batch, base: Loss) -> bool | None:
        """Whether the fast way gives what autograd does, for groups of unequal size.

        It does not if the model uses a layer's weights elsewhere too, or the loss heeds no weights.
        Samples without any gradient, as a hinge leaves those that are learnt, do not tell.
        """
        sizes = [1, len(batch) - 1]
        batch = weighted(batch, shares(sizes))
        with evaluating(self.model):
            recorded = self._record(batch, base)
            if recorded is None:
                return False
            fast = GroupMatrix(self._parts(*recorded, sizes)).matrix()
            slow = self._one_by_one(batch, sizes, base).matrix()
        if not slow.any():
            return None
        row = slow.abs().amax(1, keepdim=True)
        allowed = 1e-3 * slow.abs() + 1e-4 * row + 1e-6 * row.max()
        return bool(((fast - slow).abs() <= allowed).all())

    def _record(self, batch: Batch, base: Loss) -> tuple[list[Tensor], list[Tensor | None]] | None:
        """What the layers read, and the gradients of what they put out; nothing if one did not.

        Then torch's generator is where it was, so that the pass can be made in another way.
        """
        assert self._layers is not None
        before = torch.get_rng_state()
        try:
            with Recording(self._layers) as recording:
                loss = base(self.model, batch)
            return recording.reads(), recording.deltas(loss)
        except UnusualError:
            torch.set_rng_state(before)
            return None

    def _parts(
        self, reads: Sequence[Tensor], deltas: Sequence[Tensor | None], sizes: Sequence[int]
    ) -> list[Tensor]:
        """Each group's sum of products, layer by layer."""
        assert self._layers is not None
        found: dict[int, Tensor] = {}
        for layer, h, delta in zip(self._layers, reads, deltas, strict=True):
            if delta is None:
                continue
            delta = delta.to(layer.weight.dtype)  # autocast gives another
            if layer.weight.requires_grad:
                found[id(layer.weight)] = products(delta, h.to(delta.dtype), sizes).flatten(1)
            if layer.bias is not None and layer.bias.requires_grad:
                found[id(layer.bias)] = sums(delta, sizes)
        return self._in_order(found, len(sizes))

    def _one_by_one(self, batch: Batch, sizes: Sequence[int], base: Loss) -> GroupMatrix:
        trained = [p for p in self.flat.parameters if p.requires_grad]
        each = [
            torch.autograd.grad(base(self.model, some), trained, materialize_grads=True)
            for some in groups(batch, sizes)
        ]
        stacked = [torch.stack(rows).flatten(1) for rows in zip(*each, strict=True)]
        found = dict(zip(map(id, trained), stacked, strict=True))
        return GroupMatrix(self._in_order(found, len(sizes)))

    def _in_order(self, found: dict[int, Tensor], count: int) -> list[Tensor]:
        """The columns of all parameters; zero for frozen ones."""
        return [
            found[id(p)] if id(p) in found else p.new_zeros(count, p.numel())
            for p in self.flat.parameters
        ]


def _linear_layers(model: nn.Module) -> list[nn.Linear] | None:
    """The layers that hold all of a model's parameters, if they are linear and mix no samples."""
    layers = [one for one in model.modules() if type(one) is nn.Linear]
    held = [p for layer in layers for p in layer.parameters()]
    every = list(model.parameters())
    distinct = len({id(p) for p in held}) == len(held) == len(every)
    hidden = any(isinstance(one, _BatchNorm) or _is_compiled(one) for one in model.modules())
    return layers if distinct and every and not hidden else None


def _is_compiled(module: nn.Module) -> bool:
    """Whether its layers are called without their hooks."""
    compiled = type(module).__name__ == "OptimizedModule"
    return compiled or getattr(module, "_compiled_call_impl", None) is not None
