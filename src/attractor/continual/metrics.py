r"""What a learner kept and what it lost: measures of the matrix of accuracies.

In :math:`R`, of shape ``(n + 1, n)``, the row i (from 0) has the accuracies on all n tasks after i
tasks were learnt; the first row is of the untrained network, the very one that is then trained.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attractor.errors import InputError
from attractor.estimates import Estimate, estimate
from attractor.tasks import Measure


def average_accuracy(R: Tensor) -> float:
    r"""ACC, the mean accuracy after the last task: :math:`\frac1n \sum_{i=1}^n R_{n+1,i}`.

    Example:
        >>> average_accuracy(torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.7, 0.8]]))  # (.7 + .8) / 2
        0.75

    References:
        Lopez-Paz and Ranzato (2017), equation 2; Kuo (2021), thesis, section 6.2.5.
    """
    return _number(_checked(R)[-1].mean())


def backward_transfer(R: Tensor) -> float:
    r"""BWT, what later tasks gave to (or took from) the earlier ones.

    .. math::
        \frac{1}{n-1} \sum_{i=1}^{n-1} (R_{n+1,i} - R_{i+1,i})

    Example:
        >>> backward_transfer(torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.7, 0.8]]))  # .7 - .9
        -0.2

    References:
        Lopez-Paz and Ranzato (2017), equation 3, whose code divides by n; Kuo (2021), thesis,
        section 6.2.5.
    """
    R = _checked(R, tasks=2)
    return _number((R[-1] - R[1:].diagonal())[:-1].mean())


def forward_transfer(R: Tensor) -> float:
    r"""FWT, what a task gained from the earlier ones before it was learnt itself.

    .. math::
        \frac{1}{n-1} \sum_{i=2}^{n} (R_{i,i} - R_{1,i})

    Example:
        >>> forward_transfer(torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.7, 0.8]]))  # .3 - .2
        0.1

    References:
        Lopez-Paz and Ranzato (2017), equation 4, whose code divides by n; Kuo (2021), thesis,
        section 6.2.5.
    """
    R = _checked(R, tasks=2)
    return _number((R.diagonal() - R[0])[1:].mean())


def first_task_accuracy(R: Tensor) -> float:
    r"""FA1, the accuracy on the first task after the last: :math:`R_{n+1,1}`.

    Example:
        >>> first_task_accuracy(torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.7, 0.8]]))
        0.7

    References:
        Kuo (2021), thesis, section 6.1.5.
    """
    return _number(_checked(R)[-1, 0])


def forgetting(R: Tensor) -> float:
    r"""How far each earlier task fell below the best that it ever was, since it was learnt.

    .. math::
        \frac{1}{n-1} \sum_{i=1}^{n-1} \left(\max_{i < l \le n} R_{l,i} - R_{n+1,i}\right)

    Example:
        >>> R = torch.tensor([[0.1, 0.1, 0.1], [0.5, 0.1, 0.1], [0.6, 0.9, 0.1], [0.4, 0.9, 0.8]])
        >>> forgetting(R)  # ((.6 - .4) + (.9 - .9)) / 2
        0.1

    Departs from the paper: the untrained network does not count among the best.

    References:
        Chaudhry et al. (2018), Riemannian walk for incremental learning, section 3.
    """
    R = _checked(R, tasks=2)
    lost = [R[task + 1 : -1, task].max() - R[-1, task] for task in range(R.shape[1] - 1)]
    return _number(torch.stack(lost).mean())


def average_incremental_accuracy(R: Tensor) -> float:
    r"""The mean, over the stream, of the accuracy on the tasks learnt so far.

    .. math::
        \frac1n \sum_{l=1}^{n} \frac1l \sum_{i=1}^{l} R_{l+1,i}

    Example:
        >>> R = torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.7, 0.8]])
        >>> round(average_incremental_accuracy(R), 3)  # (.9 + .75) / 2
        0.825

    References:
        Rebuffi et al. (2017), iCaRL, section 4.1.
    """
    R = _checked(R)
    means = [R[learnt, :learnt].mean() for learnt in range(1, len(R))]
    return _number(torch.stack(means).mean())


def task_spread(R: Tensor) -> float:
    r"""How unevenly the tasks are known after the last: 1.96 standard deviations over the tasks.

    .. math::
        1.96 \sqrt{\frac{1}{n-1} \sum_{i=1}^{n} (R_{n+1,i} - \mathrm{ACC})^2}

    It says how far apart the tasks of one stream are, not how far apart seeds are.

    Example:
        >>> task_spread(torch.tensor([[0.1, 0.2], [0.9, 0.3], [0.7, 0.8]]))  # 1.96 x .0707
        0.138593

    Departs from the paper: the thesis does not say what follows its plus-minus signs; this fits
    what tables 6.5 and 6.6 print, where a deviation over seeds would be a tenth of it.

    References:
        Kuo (2021), thesis, tables 6.5 and 6.6.
    """
    return _number(1.96 * _checked(R, tasks=2)[-1].std())


METRICS: dict[str, Callable[[Tensor], float]] = {
    "acc": average_accuracy,
    "aia": average_incremental_accuracy,
    "bwt": backward_transfer,
    "fa1": first_task_accuracy,
    "forgetting": forgetting,
    "fwt": forward_transfer,
    "spread": task_spread,
}

NAMES = {
    "acc": "accuracy",
    "aia": "average_incremental_accuracy",
    "bwt": "backward_transfer",
    "fa1": "first_task_accuracy",
    "forgetting": "forgetting",
    "fwt": "forward_transfer",
    "spread": "task_spread",
}
"""The measures as tables and reports name them."""

MEASURES = {
    name: Measure("min" if name in ("forgetting", "task_spread") else "max", "share")
    for name in NAMES.values()
}
"""What each of them is."""


def measure(R: Tensor) -> dict[str, float]:
    """All measures that the number of tasks allows, by their short names.

    Example:
        >>> list(measure(torch.rand(3, 2)))
        ['acc', 'aia', 'bwt', 'fa1', 'forgetting', 'fwt', 'spread']
        >>> list(measure(torch.rand(2, 1)))
        ['acc', 'aia', 'fa1']
    """
    single = {"acc", "aia", "fa1"} if R.shape[1] == 1 else set(METRICS)
    return {name: function(R) for name, function in METRICS.items() if name in single}


def over_seeds(matrices: Sequence[Tensor]) -> dict[str, Estimate]:
    """Each measure over several seeds, with its 95% interval.

    Example:
        >>> found = over_seeds([torch.full((3, 2), 0.5), torch.full((3, 2), 0.7)])
        >>> round(found["acc"].mean, 2), round(found["acc"].half_width, 2)
        (0.6, 1.27)
    """
    each = [measure(R) for R in matrices]
    return {name: estimate([one[name] for one in each]) for name in each[0]}


def _checked(R: Tensor, tasks: int = 1) -> Tensor:
    if R.ndim != 2 or R.shape[0] != R.shape[1] + 1 or R.shape[1] < tasks:
        raise InputError(
            f"expected accuracies of shape (n + 1, n) for n of at least {tasks}, the untrained "
            f"network first, but got {tuple(R.shape)}. Try the matrix of a finished `Result`."
        )
    return R.double()


def _number(value: Tensor) -> float:
    # accuracies are single precision, of which six digits mean something
    return round(float(value), 6)
