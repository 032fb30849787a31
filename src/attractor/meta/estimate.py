"""What gradient estimators have in common: what a stretch of learners says of a rule."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

WORSE = 2.0
"""Times its first loss, above which a learner would have done better without the rule."""


class Stretch(NamedTuple):
    """How learners fared between two updates of the rule, whose weights now have gradients.

    `loss` is their mean, and `last` that at the end of the stretch.
    """

    loss: float
    last: float
    lost: str | None = None
    """Where learners diverged, if they did."""
    well: bool = False
    """Whether what counts as a round ended well."""
    moves: bool = True
    """Whether the gradient is of use."""
    worse: bool = False
    """Whether the median learner ended beyond `WORSE` times the loss with which it began: a
    training that ends so has taught the rule nothing."""


class Estimator(Protocol):
    """Runs learners, and leaves in the rule's weights an estimate of the meta-gradient."""

    rounds: int
    """How many rounds of learners there will be, and `what` they are called."""
    what: str
    advice: str
    """What to try if learners diverge."""
    clamp: float | None
    """Bound of each entry of the estimate, unless another is asked for."""
    norm: float | None
    """The same of its norm."""
    steps: int | tuple[int, int]
    """Updates of a learner, or two numbers between which they are drawn."""

    @property
    def planned(self) -> int:
        """Updates of the rule in all, at most."""
        ...

    @property
    def done(self) -> bool:
        """Whether all learners have had their updates."""
        ...

    def stretch(self) -> Stretch:
        """Run the learners up to the next update of the rule."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that decides what comes, but for the rule and the generator."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        ...
