"""Learn five tasks one after the other with one call, and see what is left of the first."""

import torch

from attractor.continual import ER, Naive, train
from attractor.models import MLP
from attractor.tasks.streams import permuted_images

for strategy in (Naive(), ER(balanced=True)):
    g = torch.Generator().manual_seed(0)
    stream = permuted_images(dataset="digits", tasks=5, generator=g)  # or "mnist"
    model = MLP([64, 100, 100, 10], init="xavier", generator=g)
    result = train(model, stream, strategy, epochs=3, seed=0)
    print(type(strategy).__name__, result.metrics)
    print(result.matrix.round(decimals=2))  # a row per task learnt, the untrained network first
