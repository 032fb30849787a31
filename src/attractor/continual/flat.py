"""All parameters of a model as one vector."""

import torch
from torch import Tensor, nn


class Flat:
    """The parameters of a model in their order, frozen ones too, as one vector.

    Args:
        model: whose parameters; they stay where they are.

    Example:
        >>> model = torch.nn.Linear(2, 1)
        >>> flat = Flat(model)
        >>> model(torch.ones(1, 2)).backward()
        >>> flat.gradient()
        tensor([1., 1., 1.])
        >>> flat.set_gradient(torch.tensor([1.0, 2.0, 3.0]))
        >>> model.bias.grad
        tensor([3.])
    """

    def __init__(self, model: nn.Module) -> None:
        self.parameters = list(model.parameters())
        self.sizes = [p.numel() for p in self.parameters]

    def values(self) -> Tensor:
        """A copy of the parameters."""
        return torch.cat([p.detach().reshape(-1) for p in self.parameters])

    def gradient(self) -> Tensor:
        """A copy of the gradients; zero where there is none."""
        return torch.cat(
            [
                p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1)
                for p in self.parameters
            ]
        )

    def gradient_of(self, loss: Tensor) -> Tensor:
        """The gradient of a loss, zero for frozen parameters; what they have is left alone."""
        trained = [p for p in self.parameters if p.requires_grad]
        found = iter(torch.autograd.grad(loss, trained, materialize_grads=True))
        return torch.cat(
            [
                next(found).reshape(-1) if p.requires_grad else p.new_zeros(p.numel())
                for p in self.parameters
            ]
        )

    def set_gradient(self, gradient: Tensor) -> None:
        """Let the parameters that are not frozen have these gradients, which are not copied."""
        parts = torch.split(gradient, self.sizes)
        for p, part in zip(self.parameters, parts, strict=True):
            if p.requires_grad:
                p.grad = part.view_as(p)

    @torch.no_grad()
    def add(self, change: Tensor) -> None:
        """Change the parameters that are not frozen."""
        parts = torch.split(change, self.sizes)
        for p, part in zip(self.parameters, parts, strict=True):
            if p.requires_grad:
                p.add_(part.view_as(p))

    def longer(self, vector: Tensor, before: "Flat", rest: Tensor) -> Tensor:
        """A vector of a network that had fewer rows, as one of this network.

        Args:
            vector: of the old network.
            before: its parameters, which are the first rows of those of this network.
            rest: a vector of this network that has the new rows.
        """
        found = rest.clone()
        for new, old in zip(self._parts(found), before._parts(vector), strict=True):
            (new[: len(old)] if old.ndim else new).copy_(old)
        return found

    def _parts(self, vector: Tensor) -> list[Tensor]:
        """A vector cut into the shapes of the parameters."""
        cut = zip(torch.split(vector, self.sizes), self.parameters, strict=True)
        return [part.view_as(p) for part, p in cut]

    def begins_with(self, before: "Flat") -> bool:
        """Whether the parameters of another network are the first rows of those of this one."""
        if len(self.parameters) != len(before.parameters):
            return False
        pairs = zip(self.parameters, before.parameters, strict=True)
        return all(torch.equal(wide[: len(old)] if old.ndim else wide, old) for wide, old in pairs)

    def named(self, vector: Tensor, model: nn.Module) -> dict[str, Tensor]:
        """Such a vector, parameter by parameter."""
        names = zip(model.named_parameters(), self._parts(vector), strict=True)
        return {name: part for (name, _), part in names}
