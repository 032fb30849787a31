"""Training is done in training mode, and measuring in evaluation mode, whatever came before."""

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from attractor.continual import Learner
from attractor.models import MLP
from attractor.tasks import Digits
from attractor.tasks.streams import permuted_images
from attractor.training import Plan, Supervised, evaluate


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Noting(nn.Module):
    """Notes the mode of each call; fails at one of them."""

    def __init__(self, fails: int | None = None) -> None:
        super().__init__()
        self.layer, self.fails = nn.Linear(64, 10), fails
        self.modes: list[bool] = []

    def forward(self, x: Tensor) -> Tensor:
        self.modes.append(self.training)
        if len(self.modes) == self.fails:
            raise RuntimeError("enough")
        answer: Tensor = self.layer(x)
        return answer


def test_a_model_in_evaluation_mode_is_trained_in_training_mode() -> None:
    model = Noting().eval()
    training = Supervised(
        model,
        Digits(order="flat"),
        SGD(model.parameters(), 0.1),
        Plan(4, eval_every=2, eval_batches=1),
        generator=seeded(),
    )
    while not training.done:
        training.advance()
    assert model.modes == [True, True, False, True, True, False]


def test_a_learner_of_a_stream_trains_in_training_mode() -> None:
    stream = permuted_images(dataset="digits", tasks=2, generator=seeded())
    states = []
    for mode in (True, False):
        model = MLP([64, 16, 10], dropout=0.5, generator=seeded(1)).train(mode)
        learner = Learner(model, stream, iterations=3)
        while not learner.done:
            learner.advance()
        states.append(nn.utils.parameters_to_vector(model.parameters()))
    assert torch.equal(*states)


@pytest.mark.parametrize("mode", [True, False])
def test_the_mode_is_put_back_even_if_measuring_fails(mode: bool) -> None:
    model = Noting(fails=2).train(mode)
    with pytest.raises(RuntimeError, match="enough"):
        evaluate(model, Digits(order="flat"), "valid", 20)
    assert model.training is mode
    assert model.modes == [False, False]
