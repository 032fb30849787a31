"""A strategy in a training loop of one's own."""

import torch

from attractor.continual import GEM, accuracy
from attractor.models import HCN
from attractor.tasks import Shuffled
from attractor.tasks.streams import permuted_images

g = torch.Generator().manual_seed(0)
stream = permuted_images(dataset="digits", tasks=3, generator=g)
strategy = GEM(100)
model = strategy.start(HCN([64, 100, 100, 10], generator=g), stream, generator=g)
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
for task in stream:
    strategy.start_task(model, task, optimiser, 200)
    batches = Shuffled(task, 10, generator=g)
    for _ in range(200):
        optimiser.zero_grad()
        batch = batches.draw()
        strategy.loss(model, batch).backward()
        strategy.observe(batch)
        strategy.after_backward(model)
        strategy.step(model, optimiser)
    strategy.end_task(model, task)
    print(task.name, [round(accuracy(model, one), 2) for one in stream])
