"""How classes are judged."""

import torch

from attractor.tasks import Batch
from attractor.tasks.answers import cross_entropy
from attractor.tasks.batch import IGNORE


def test_weights_are_of_samples_however_many_of_their_steps_are_asked() -> None:
    said = torch.randn(3, 4, 5)
    y = torch.tensor([[0, 1, 2, 3], [4, IGNORE, IGNORE, IGNORE], [IGNORE, 1, 4, 0]])
    weight, lengths = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([4, 4, 2])
    each = -said.log_softmax(-1).gather(2, y.clamp(min=0)[..., None])[..., 0]
    means = torch.stack([each[0].mean(), each[1, 0], each[2, 1]])  # the third ends after two steps
    batch = Batch(said, y, lengths, weight=weight)
    torch.testing.assert_close(cross_entropy(lambda x: said, batch), weight @ means)  # type: ignore[arg-type]
