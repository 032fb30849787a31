"""Clockwork RNN: Koutnik et al. (2014), section 3; Kuo's thesis, section 3.1.6."""

from collections.abc import Sequence

import numpy as np

from reference.result import Array, Run, State, Weights, stack


def run(
    weights: Weights,
    x: Array,
    *,
    sizes: Sequence[int],
    periods: Sequence[int],
    slower: bool = True,
    state: State | None = None,
    first: int = 0,
) -> Run:
    r"""Take one sequence through the cell.

    .. math::
        h_t^{(g)} = \tanh\Big(W^{(g)} x_t + \sum_{j \in S(g)} U^{(g,j)} h_{t-1}^{(j)} + b^{(g)}\Big)
        \text{ if } t \bmod T_g = 0, \text{ otherwise } h_{t-1}^{(g)}

    where S(g) are the groups whose period is at least that of g: connections go from slower groups
    to faster ones and within a group.

    Left open by the paper: t starts at 0; :math:`h_0 = 0`.

    Args:
        weights: ``W{g} (n_g, I)``, ``b{g} (n_g,)``, and ``U{g}{j} (n_g, n_j)`` for all j in S(g).
        x: ``(T, I)``.
        sizes: units of each group.
        periods: the period of each group.
        slower: also read the slower groups; otherwise each group reads itself alone.
        state: ``h``.
        first: the number of the first step.

    Returns:
        outputs :math:`h_t`; state ``h``; steps ``h``.
    """
    ends = np.cumsum(sizes)[:-1]
    h = np.zeros(sum(sizes)) if state is None else state["h"]
    records = []
    for t, x_t in enumerate(x, start=first):
        groups = np.split(h, ends)
        new = []
        for g, period in enumerate(periods):
            if t % period != 0:
                new.append(groups[g])
                continue
            total = weights[f"W{g}"] @ x_t + weights[f"b{g}"]
            for j, other in enumerate(periods):
                if g == j or (slower and other > period):
                    total = total + weights[f"U{g}{j}"] @ groups[j]
            new.append(np.tanh(total))
        h = np.concatenate(new)
        records.append({"h": h})
    steps = stack(records)
    return Run(steps["h"], {"h": h}, steps)
