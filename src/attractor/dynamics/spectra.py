"""The singular values that MTL2L makes of data: do they tell data sets apart?"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from scipy.optimize import nnls
from torch import Tensor

from attractor.errors import InputError
from attractor.optimisers import MTL2L
from attractor.optimisers.view import View


@dataclass(frozen=True, slots=True)
class Mixture:
    """A data set as a mixture of others: their `shares`, and what of it none of them explains.

    `unexplained` is the distance of its mean from the mixture, as a share of its distance from the
    mean of the others: 0 within their span, 1 where the mixture is no better than that mean.
    """

    shares: dict[str, float]
    unexplained: float


@dataclass(frozen=True, slots=True)
class Spectra:
    """Singular values of batches, by the name of their data set, each ``(batches, values)``."""

    values: dict[str, Tensor]

    @property
    def told_apart(self) -> float:
        """The share of batches that are nearest to the mean of their own data set.

        Of that mean, the batch itself is no part.
        """
        right = total = 0
        means = {name: rows.mean(0) for name, rows in self.values.items()}
        for name, rows in self.values.items():
            count = len(rows)
            own = (rows.sum(0) - rows) / (count - 1)
            near = (rows - own).norm(dim=1)
            others = [(rows - mean).norm(dim=1) for key, mean in means.items() if key != name]
            right += int((near < torch.stack(others).amin(0)).sum())
            total += count
        return right / total

    def spread(self) -> dict[str, float]:
        """How far the batches of each data set are from its mean, on average."""
        return {
            name: float((rows - rows.mean(0)).norm(dim=1).mean())
            for name, rows in self.values.items()
        }

    def plane(self) -> dict[str, Tensor]:
        """The batches on the plane that holds most of what varies, each ``(batches, 2)``."""
        rows = torch.cat(list(self.values.values()))
        middle = rows.mean(0)
        axes = torch.linalg.svd(rows - middle, full_matrices=False).Vh[:2]
        return {name: (one - middle) @ axes.T for name, one in self.values.items()}

    def mixture(self, name: str) -> Mixture:
        r"""The mean of a data set by those of the others.

        .. math::
            \min_{p \ge 0,\ \sum p = 1} \| m - \sum_j p_j m_j \|

        Args:
            name: of the data set, such as one that was not in meta-training.
        """
        if name not in self.values:
            raise InputError(
                f"expected one of {', '.join(self.values)}, but got {name!r}. Try one of these."
            )
        wanted = self.values[name].mean(0)
        others = {key: rows.mean(0) for key, rows in self.values.items() if key != name}
        means = torch.stack(list(others.values()))
        scale = 1e3 * float(means.norm()) + 1.0  # so that the shares sum to one
        left = torch.cat([means.T, torch.full((1, len(means)), scale).double()])
        right = torch.cat([wanted, torch.tensor([scale]).double()])
        shares = torch.from_numpy(nnls(left.numpy(), right.numpy())[0])
        far = float((wanted - means.mean(0)).norm())
        near = float((wanted - shares @ means).norm())
        return Mixture(dict(zip(others, shares.tolist(), strict=True)), near / far if far else 0.0)


@torch.no_grad()
def spectra(rule: MTL2L, batches: Mapping[str, Tensor]) -> Spectra:
    """The singular values that a rule makes of batches of several data sets.

    Args:
        rule: it is not changed.
        batches: by the name of their data set, each ``(batches, samples, features)``; at least two
            of at least two.

    Example:
        >>> g = torch.Generator().manual_seed(0)
        >>> rule = MTL2L(context_size=6, generator=g)
        >>> dark, bright = torch.rand(5, 8, 6, generator=g), 3 + torch.rand(5, 8, 6, generator=g)
        >>> found = spectra(rule, {"dark": dark, "bright": bright})
        >>> found.told_apart, found.values["dark"].shape
        (1.0, torch.Size([5, 80]))

    References:
        Kuo (2021), thesis, section 5.1.4: singular values describe each data set, and an unseen one
        as a mixture of the seen.
    """
    if len(batches) < 2 or any(len(rows) < 2 for rows in batches.values()):
        raise InputError(
            "expected at least two data sets of at least two batches, but got "
            f"{ {name: len(rows) for name, rows in batches.items()} }. Give more."
        )
    nothing = torch.zeros(1, 1)
    state = rule.init(nothing, View.of([nothing[0]]))
    made = {
        name: torch.cat([rule.singular_values(x[None], state).flatten(1) for x in rows]).double()
        for name, rows in batches.items()
    }
    if rule.stable:  # of the first look, a tenth: see `MTL2L.singular_values`
        made = {name: 10 * rows for name, rows in made.items()}
    return Spectra(made)
