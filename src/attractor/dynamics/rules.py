"""A learned optimiser under a gradient that does not change, as a system of its own state."""

import copy
import math

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from attractor.checks import number
from attractor.dynamics.fixed import FixedPoints, fixed_points
from attractor.errors import InputError
from attractor.optimisers import Rule
from attractor.optimisers.view import View


class RuleMap:
    r"""The state of a rule from one update to the next, for one number and a constant gradient.

    .. math::
        s_{t+1} = F(s_t;\, g, \theta), \qquad \Delta\theta_t = u(s_t;\, g, \theta)

    Args:
        rule: it is copied, and read in double precision.
        gradient: g.
        value: :math:`\theta`, which is held too.

    Shape:
        a state ``(size,)``: all that the rule keeps of one number, one after the other.

    Example:
        >>> from attractor.optimisers import DMSGD
        >>> still = RuleMap(DMSGD(generator=torch.Generator().manual_seed(0)), 0.3)
        >>> still(still.start).shape == (still.size,)
        True
    """

    def __init__(self, rule: Rule, gradient: float, value: float = 0.0) -> None:
        if rule.needs_context:
            raise InputError(
                f"expected a rule that reads gradients alone, but {type(rule).__name__} is shown "
                "data too. Try spectra for what it makes of them."
            )
        if rule.size not in (None, 1):
            raise InputError(
                f"expected a rule that goes on any network, but this {type(rule).__name__} is made "
                f"for {rule.size} numbers. Make it for one."
            )
        self.rule = copy.deepcopy(rule).double().requires_grad_(False)
        self.gradient = torch.full((1, 1), number("gradient", gradient, -math.inf)).double()
        self.value = torch.full((1, 1), number("value", value, -math.inf)).double()
        self.view = View.of([self.value[0]])
        leaves, self._spec = pytree.tree_flatten(self.rule.init(self.value, self.view))
        if not leaves:
            raise InputError(
                f"expected a rule that remembers, but {type(rule).__name__} has no state: its step "
                "depends on the gradient alone. Try response."
            )
        self._shapes = [leaf.shape for leaf in leaves]
        self.start = torch.cat([leaf.double().flatten() for leaf in leaves])

    @property
    def size(self) -> int:
        """Numbers in a state."""
        return self.start.numel()

    def __call__(self, flat: Tensor) -> Tensor:
        """The next state."""
        return self._update(flat)[1]

    def step(self, flat: Tensor) -> Tensor:
        """What the rule adds to the number in a state."""
        return self._update(flat)[0]

    def _update(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        sizes = [math.prod(shape) for shape in self._shapes]
        pieces = zip(torch.split(flat, sizes), self._shapes, strict=True)
        parts = [piece.view(shape) for piece, shape in pieces]
        state = pytree.tree_unflatten(parts, self._spec)
        step, after = self.rule.update(self.gradient, state, self.value, self.view)
        leaves = pytree.tree_leaves(after)
        return step[0, 0], torch.cat([leaf.flatten() for leaf in leaves])


def rule_fixed_points(
    rule: Rule, gradient: float, *, value: float = 0.0, starts: int = 50, spread: float = 1.0
) -> FixedPoints:
    """Where the memory of a learned optimiser comes to rest while the gradient stays the same.

    A rule with one stable point answers a long constant gradient in one way, whatever came before;
    one with several remembers in which of their basins it was.

    Args:
        rule: it is not changed.
        gradient: which stays.
        value: of the number that is optimised, which is held.
        starts: states from which to look.
        spread: of the starts.

    Example:
        >>> from attractor.optimisers import DMSGD
        >>> rule = DMSGD(generator=torch.Generator().manual_seed(0))
        >>> found = rule_fixed_points(rule, 0.3, starts=20)
        >>> len(found), found.stability
        (1, ['stable'])

    References:
        Maheswaranathan et al. (2021), Reverse engineering learned optimizers reveals known and
        novel mechanisms, section 4, look at the linear dynamics there.
    """
    made = RuleMap(rule, gradient, value)
    return fixed_points(made, starts, size=made.size, spread=spread)
