"""What a trainer of rules does about learners that diverge."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from attractor.training.process import Diverged

PATIENCE = 5
"""Rounds of learners in a row that may diverge before training gives up."""


class Patience:
    """Counts rounds that diverge in a row, and keeps the weights of the last that went well.

    Training gives up after `PATIENCE` such rounds in a row, and if the last one of all diverges:
    after it nothing can show that the rule still works.

    Args:
        rule: what is trained; if training gives up, it gets those weights back.
        rounds: how many there will be.
        what: is counted, in plural.
        advice: what to try.

    Example:
        >>> patience = Patience(nn.Linear(1, 1), 3, "rounds", "Try a smaller lr.")
        >>> patience.lost("at step 4 of round 1", last=False)
        >>> patience.well()
        >>> patience.failures
        0
    """

    def __init__(self, rule: nn.Module, rounds: int, what: str, advice: str) -> None:
        self.rule, self.rounds, self.what, self.advice = rule, rounds, what, advice
        self.failures = 0
        self.ever = False
        self.good = self._weights()

    def well(self) -> None:
        """A round went well; to be told before the weights that it went well with change."""
        self.failures, self.ever, self.good = 0, True, self._weights()

    def lost(self, where: str, *, last: bool) -> None:
        """A round diverged, perhaps the last one; raises `Diverged` if that is enough."""
        self.failures += 1
        if self.failures < PATIENCE and not last:
            return
        self.rule.load_state_dict(self.good, strict=False)
        count = f"{self.failures} {self.what} in a row, the last"
        if self.failures == self.rounds:
            count = f"all {self.what} ({self.rounds}), the last"
        elif self.failures == 1:
            count = f"the last of {self.rounds} {self.what},"
        initial = "" if self.ever else ", which are its initial ones"
        raise Diverged(
            f"learners diverged in {count} {where}; the rule's last good weights are kept{initial}",
            self.advice,
        )

    def state_dict(self) -> dict[str, Any]:
        """All that decides when it ends."""
        good = {name: value.clone() for name, value in self.good.items()}
        return {"failures": self.failures, "ever": self.ever, "good": good}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken."""
        self.failures, self.ever = state["failures"], state["ever"]
        self.good = {name: value.clone() for name, value in state["good"].items()}

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.rule.named_parameters()}
