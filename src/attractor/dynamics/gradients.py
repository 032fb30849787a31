"""How much gradient reaches each step of a sequence, and each layer of a network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import jacrev, vmap
from torch.utils import _pytree as pytree

from attractor.dynamics.systems import as_layer, part_names, walk
from attractor.errors import InputError

Loss = Callable[[Tensor], Tensor]
"""From the outputs ``(time, batch, features)`` to a number."""


@dataclass(frozen=True, slots=True)
class StepNorms:
    r"""Norms of :math:`\partial L / \partial h_t`, ``(time, batch)``, for every part of the state.

    The derivative is the whole one: through all that comes after step t.
    """

    norms: dict[str, Tensor]


def gradient_norms(network: nn.Module, x: Tensor, loss: Loss) -> StepNorms:
    """Norms of the gradient at every step, by one backward pass.

    Args:
        network: a cell, a layer, or torch's own; it is copied, never changed.
        x: sequences ``(time, batch, features)``.
        loss: of the outputs ``(time, batch, features)``.

    Example:
        >>> found = gradient_norms(nn.LSTM(1, 4), torch.ones(6, 2, 1), lambda y: y[-1].sum())
        >>> sorted(found.norms), found.norms["c"].shape
        (['c', 'h'], torch.Size([6, 2]))

    References:
        Chandar (2020), thesis, equation 2.13.
    """
    layer = as_layer(network)
    if layer is None or x.dim() != 3:
        raise InputError(
            "expected a recurrent network and sequences (time, batch, features), but got "
            f"{type(network).__name__} and {tuple(x.shape)}. Try nn.GRU(1, 8) and x[:, None]."
        )
    x = x.detach().to(next(layer.parameters()))
    # from the first state on all is a function of something that asks for a gradient
    states = pytree.tree_map(lambda part: part.requires_grad_(), layer.starts(x.shape[1]))
    with torch.enable_grad():
        output, course = walk(layer, x, states)
        seen = [pytree.tree_leaves(moment) for moment in course]
        value = loss(output)
        flat = [leaf for leaves in seen for leaf in leaves if leaf.requires_grad]
        grads = iter(torch.autograd.grad(value, flat, allow_unused=True))
    norms: dict[str, list[Tensor]] = {name: [] for name in part_names(layer)}
    for leaves in seen:
        for name, leaf in zip(norms, leaves, strict=True):
            grad = next(grads) if leaf.requires_grad else None
            known = torch.zeros_like(leaf) if grad is None else grad
            norms[name].append(known.detach().reshape(len(leaf), -1).norm(dim=-1))
    return StepNorms({name: torch.stack(rows) for name, rows in norms.items()})


@dataclass(frozen=True, slots=True)
class DepthNorms:
    """Names of layers in the order of the forward pass, and two norms for each.

    `outputs` is of the gradient of the loss at the layer's output, the mean over the batch;
    `parameters` of that of its own parameters, zero where it has none.
    """

    names: tuple[str, ...]
    outputs: Tensor
    parameters: Tensor


def gradient_by_depth(
    model: nn.Module, x: Tensor | tuple[Tensor, ...], loss: Loss, names: Sequence[str] = ()
) -> DepthNorms:
    r"""How much gradient reaches each layer of a network, from one backward pass.

    Args:
        model: any network; its parameters, gradients and hooks are as before afterwards.
        x: what it reads; a tuple if it is told more than one thing, such as the task too.
        loss: of what it answers.
        names: which submodules; by default those without submodules, that have parameters. One
            that no gradient reaches, such as a frozen first layer, is left out.

    Example:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        >>> gradient_by_depth(model, torch.ones(5, 3), lambda y: y.mean()).names
        ('0', '2')

    References:
        Kuo (2021), thesis, equations 2.5 and 2.6, 6.10 and 6.11.
    """
    chosen = dict(model.named_modules())
    for name in names:
        if name not in chosen:
            raise InputError(
                f"expected names of submodules, but there is no {name!r}. Try one of "
                f"{', '.join(list(chosen)[1:6])}."
            )
    leaves = [n for n, m in chosen.items() if not list(m.children()) and list(m.parameters())]
    wanted = list(names) or leaves
    seen: list[tuple[str, Tensor]] = []

    def watch(name: str) -> Callable[..., None]:
        def note(module: nn.Module, given: object, output: object) -> None:
            if isinstance(output, Tensor) and output.requires_grad:
                seen.append((name, output))

        return note

    handles = [chosen[name].register_forward_hook(watch(name)) for name in wanted]
    try:
        with torch.enable_grad():
            value = loss(model(*x) if isinstance(x, tuple) else model(x))
    finally:
        for handle in handles:
            handle.remove()
    owned = [list(chosen[name].parameters()) for name, _ in seen]
    flat = [tensor for _, tensor in seen] + [p for own in owned for p in own]
    grads = list(torch.autograd.grad(value, flat, allow_unused=True))
    outputs = [
        torch.zeros(()) if g is None else g.detach().reshape(len(g), -1).norm(dim=-1).mean()
        for g in grads[: len(seen)]
    ]
    rest = iter(grads[len(seen) :])
    parameters = []
    for own in owned:
        squares = [g.square().sum() for g in (next(rest) for _ in own) if g is not None]
        parameters.append(torch.stack(squares).sum().sqrt() if squares else torch.zeros(()))
    return DepthNorms(tuple(n for n, _ in seen), torch.stack(outputs), torch.stack(parameters))


def layer_jacobians(layers: Sequence[Callable[[Tensor], Tensor]], x: Tensor) -> list[Tensor]:
    r"""Jacobian ``(batch, outputs, inputs)`` of each layer, at what the ones before make of x.

    That of a residual layer is :math:`I + D W`, that of a highway :math:`I` where its gate is 0
    and that of the plain layer where it is 1.

    Example:
        >>> double = lambda n: 2 * n
        >>> layer_jacobians([double], torch.ones(1, 2))[0].tolist()
        [[[2.0, 0.0], [0.0, 2.0]]]

    References:
        Kuo (2021), thesis, table 2.1.
    """
    found = []
    with torch.no_grad():
        for layer in layers:
            found.append(vmap(jacrev(layer))(x))
            x = layer(x)
    return found
