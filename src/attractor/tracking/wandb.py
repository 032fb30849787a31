"""Points as an offline run of Weights & Biases, which ``wandb sync`` uploads if one wants to."""

from collections.abc import Sequence
from pathlib import Path

from attractor.tracking.base import About, Point, by_step

ENVIRONMENT = {"WANDB_ERROR_REPORTING": "false"}


class WandbWriter:
    """An offline run; its own count of steps only grows, so ours is a measure named ``step``.

    Nothing leaves the machine, and neither code nor the state of a repository is kept.
    """

    def __init__(self, about: About, root: Path, fresh: bool) -> None:
        assert fresh, "an offline run cannot be taken up again"
        import wandb

        place = about.place(root)
        place.mkdir(parents=True, exist_ok=True)
        self.run = wandb.init(
            project=place.parent.name,
            id=place.name[-128:],
            name=about.name,
            dir=place,
            mode="offline",
            reinit="create_new",
            config=dict(about.settings),
            settings=wandb.Settings(
                console="off",
                silent=True,
                disable_git=True,
                disable_code=True,
                save_code=False,
                x_disable_meta=True,
                x_disable_stats=True,
            ),
        )
        self.run.define_metric("*", step_metric="step")

    def add(self, points: Sequence[Point]) -> None:
        for step, values in by_step(points):
            self.run.log({"step": step, **values})

    def close(self) -> None:
        self.run.finish()
