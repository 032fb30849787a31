"""Points in an MLflow store: one database below the folder of the sink."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from attractor.tracking.base import About, Point

ENVIRONMENT = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_LOGGING_LEVEL": "WARNING"}
"""Nothing leaves the machine, and nothing is said of the tables that it makes."""
TAG = "attractor.run"
MOST = 1000
"""Metrics that one call takes."""
MOST_SETTINGS = 100
LONGEST = 6000
"""Of a setting, in characters."""


class MLflowWriter:
    """A run of MLflow, in the experiment that has the name of ours.

    MLflow has no number for infinity: it keeps the largest of double precision in its place.
    """

    def __init__(self, about: About, root: Path, fresh: bool) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        root = root.absolute()
        root.mkdir(parents=True, exist_ok=True)
        self.client = MlflowClient(f"sqlite:///{root / 'mlflow.db'}")
        group = self.client.get_experiment_by_name(about.group)
        number = group.experiment_id if group else self._group(about.group, root)
        there = self.client.search_runs([number], f"tags.`{TAG}` = '{about.place(root).name}'")
        if fresh:
            for old in there:
                self.client.delete_run(old.info.run_id)
        if not fresh and there:
            self.key = there[0].info.run_id
            self.client.update_run(self.key, "RUNNING")
            return
        tags = {TAG: about.place(root).name}
        self.key = self.client.create_run(number, tags=tags, run_name=about.name).info.run_id
        params = [Param(_plain(k), str(v)[:LONGEST]) for k, v in about.settings.items()]
        for first in range(0, len(params), MOST_SETTINGS):
            self.client.log_batch(self.key, params=params[first : first + MOST_SETTINGS])

    def _group(self, name: str, root: Path) -> str:
        place = (root / "artifacts").as_uri()
        made: str = self.client.create_experiment(name, artifact_location=place)
        return made

    def add(self, points: Sequence[Point]) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(_plain(p.name), p.value, now, p.step) for p in points]
        for first in range(0, len(metrics), MOST):
            self.client.log_batch(self.key, metrics=metrics[first : first + MOST])

    def close(self) -> None:
        self.client.set_terminated(self.key)


def _plain(name: str) -> str:
    """A name as MLflow allows it."""
    return re.sub(r"[^\w\-. /]", "_", name)
