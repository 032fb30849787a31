"""Learn one task after the other, and nothing else."""

from attractor.continual.strategies.base import Strategy


class Naive(Strategy):
    r"""Train on each task in turn, the lower bound.

    .. math::
        \theta \leftarrow \theta - \alpha \nabla L_V

    Example:
        >>> Naive().state_dict()
        {}

    Departs from the paper: nothing.

    References:
        Kuo (2021), thesis, section 6.1.5 ("Singular"); McCloskey and Cohen (1989), Catastrophic
        interference in connectionist networks.
    """

    reference = "mccloskey1989catastrophic"
