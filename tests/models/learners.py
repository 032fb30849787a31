"""Many learners at once, as meta-training has them, against one after the other."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap


def check_learners_at_once(models: Sequence[nn.Module], x: Tensor, y: Tensor) -> None:
    """Losses and gradients under vmap are those of each learner alone; x has a row for each."""
    parameters, buffers = stack_module_state(list(models))
    assert not buffers

    def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(models[0], parameters, (x,)), y)

    gradients, losses = vmap(grad_and_value(loss))(parameters, x, y)
    for n, model in enumerate(models):
        alone = F.cross_entropy(model(x[n]), y[n])
        torch.testing.assert_close(losses[n], alone)
        names, leaves = zip(*model.named_parameters(), strict=True)
        for name, gradient in zip(names, torch.autograd.grad(alone, leaves), strict=True):
            torch.testing.assert_close(gradients[name][n], gradient)
