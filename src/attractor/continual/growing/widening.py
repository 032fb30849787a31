r"""Units that are copied, and the weights around them.

If unit i becomes f units, what reads it is shared out among the copies and what it reads is given
to each of them, so that all that is computed stays the same:

.. math::
    U_{jk} = W_{g(j)k} \;\text{(into the copies)}, \qquad
    U_{kj} = \frac{W_{kg(j)}}{f_{g(j)}} + \varepsilon_{kj}, \quad
    \sum_{j: g(j) = i} \varepsilon_{kj} = 0 \;\text{(out of them)}
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

LINEAR = frozenset({"exp_avg", "momentum_buffer", "grad_avg"})
"""What optimisers keep that is as large as a gradient."""

SQUARED = frozenset({"exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum"})
"""What they keep that is as large as its square."""


class Wide(NamedTuple):
    """A layer of units that has become wider.

    Args:
        units: :math:`g`, of each unit the one whose copy it is.
        copies: :math:`f`, how many units are copies of the same one.

    Example:
        >>> units(2, 4, torch.Generator().manual_seed(0)).units[:2]
        tensor([0, 1])
    """

    units: Tensor
    copies: Tensor

    def repeated(self, size: int, blocks: int | None = None) -> "Wide":
        """The same for a dimension that has so many blocks of the units, and then other rows."""
        n = 1 + int(self.units.max())
        count = size // n if blocks is None else blocks
        parts = [self.units + block * n for block in range(count)]
        rest = torch.arange(count * n, size)
        copies = torch.cat([self.copies.repeat(count), torch.ones_like(rest)])
        return Wide(torch.cat([*parts, rest]), copies)


def units(n: int, m: int, generator: Generator | None) -> Wide:
    """A layer of n units with m: each stays, and the others are copies of random ones."""
    more = torch.randint(n, (m - n,), generator=generator)
    index = torch.cat([torch.arange(n), more])
    return Wide(index, torch.bincount(index, minlength=n)[index])


def kept(n: int) -> Wide:
    """A layer that stays as it is."""
    return Wide(torch.arange(n), torch.ones(n, dtype=torch.long))


def beside(parts: Sequence[Wide]) -> Wide:
    """Layers side by side, as the two directions of a recurrent one."""
    index, first = [], 0
    for part in parts:
        index.append(part.units + first)
        first += 1 + int(part.units.max())
    return Wide(torch.cat(index), torch.cat([part.copies for part in parts]))


class Edit(NamedTuple):
    """What becomes of one dimension of a weight: it belongs to the copies, or reads them."""

    kind: Literal["copy", "share"]
    wide: Wide


Edits = tuple[Edit | None, ...]
"""What becomes of each dimension; nothing of those that are ``None``."""


def widened(
    weight: Tensor, edits: Edits, noise: float = 0.0, generator: Generator | None = None
) -> Tensor:
    """A weight as the wider network has it.

    Args:
        weight: of the narrow one.
        edits: of each dimension.
        noise: how large the noise on shared weights is, in deviations of the weights.
        generator: draws it.

    Example:
        >>> wide = Wide(torch.tensor([0, 1, 1]), torch.tensor([1, 2, 2]))
        >>> widened(torch.tensor([[4.0, 6.0]]), (None, Edit("share", wide)))
        tensor([[4., 3., 3.]])
    """
    found = weight.detach()
    for dim, edit in enumerate(edits):
        if edit is None:
            continue
        found = found.index_select(dim, edit.wide.units.to(found.device))
        if edit.kind == "share":
            found = found / _along(edit.wide.copies, dim, found)
    for dim, edit in enumerate(edits):
        if edit is not None and edit.kind == "share" and noise and weight.numel() > 1:
            size = noise * float(weight.detach().std())
            found = found + size * zero_sum(found, dim, edit.wide, generator)
    return found.clone()


def zero_sum(like: Tensor, dim: int, wide: Wide, generator: Generator | None) -> Tensor:
    """Random numbers that are zero in sum over the copies of each unit.

    Args:
        like: its shape and type are theirs.
        dim: of the copies.
        wide: which they are.
        generator: draws them.

    References:
        Chandar (2020), algorithm 2.
    """
    found = torch.zeros_like(like).movedim(dim, -1)
    order = torch.argsort(wide.units, stable=True)
    counts = torch.bincount(wide.units)
    first = 0
    for k in counts.tolist():
        places, first = order[first : first + k], first + k
        if k > 1:
            points = torch.rand(*found.shape[:-1], k - 1, generator=generator).to(found)
            ends = (torch.zeros_like(found[..., :1]), torch.ones_like(found[..., :1]))
            points = torch.cat([ends[0], points.sort(-1).values, ends[1]], -1)
            found[..., places.to(found.device)] = points.diff(dim=-1) - 1 / k
    return found.movedim(-1, dim)


def carried(state: Tensor, name: str, edits: Edits) -> Tensor:
    r"""What an optimiser keeps of a weight, for the wider network.

    The gradient of what the copies read is :math:`1/f` of what it was, as each of them passes on
    only its share; that of what reads them stays.
    """
    found = state
    for dim, edit in enumerate(edits):
        if edit is None:
            continue
        found = found.index_select(dim, edit.wide.units.to(found.device))
        if edit.kind == "copy":
            power = 2 if name in SQUARED else 1
            found = found / _along(edit.wide.copies, dim, found) ** power
    return found.clone()


def _along(values: Tensor, dim: int, like: Tensor) -> Tensor:
    shape = [1] * like.ndim
    shape[dim] = -1
    return values.to(like).view(shape)


class Growth(NamedTuple):
    """A network that has grown, and what became of its weights.

    Args:
        model: the wide one.
        edits: of each parameter by its name; of those that are not named, nothing.
    """

    model: nn.Module
    edits: dict[str, Edits]

    def carry(self, before: nn.Module, old: Optimizer, new: Optimizer) -> bool:
        """Give the wide network's optimiser the moments of the narrow one's.

        Args:
            before: the narrow network.
            old: its optimiser.
            new: that of the wide one, as it was just made.

        Returns:
            Whether there was something to carry over: not of an optimiser whose state is of a kind
            that is not known, which begins anew.
        """
        if type(old) is not type(new) or not old.state:
            return False
        names = {id(p): name for name, p in before.named_parameters()}
        known = LINEAR | SQUARED | {"step"}
        if any(id(p) not in names or not known >= set(kept) for p, kept in old.state.items()):
            return False
        wide = dict(self.model.named_parameters())
        for p, kept_of in old.state.items():
            name = names[id(p)]
            new.state[wide[name]] = {
                key: _state(value, key, p, self.edits.get(name, ()))
                for key, value in kept_of.items()
            }
        return True

    def carry_rows(self, before: nn.Module, old: Optimizer, new: Optimizer) -> None:
        """Give an optimiser the moments of one whose network had fewer rows; new ones have none."""
        if type(old) is not type(new):
            return
        pairs = zip(before.parameters(), self.model.parameters(), strict=True)
        for p, wide in pairs:
            if p in old.state:
                new.state[wide] = {
                    key: _longer(value, p, wide) for key, value in old.state[p].items()
                }


def _longer(value: Any, parameter: Tensor, wide: Tensor) -> Any:
    if not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    longer = value.new_zeros(wide.shape)
    longer[tuple(slice(size) for size in value.shape)] = value
    return longer


def _state(value: Any, key: str, parameter: Tensor, edits: Edits) -> Any:
    if isinstance(value, Tensor):
        return carried(value, key, edits) if value.shape == parameter.shape else value.clone()
    return value
