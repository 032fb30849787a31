"""The table of sinks."""

from attractor.tracking.base import Sink
from attractor.tracking.csv import CSVWriter
from attractor.tracking.mlflow import MLflowWriter
from attractor.tracking.tensorboard import TensorBoardWriter
from attractor.tracking.wandb import WandbWriter

SINKS: dict[str, Sink] = {
    "csv": Sink(CSVWriter, None, "ls -R {}"),
    "mlflow": Sink(MLflowWriter, "mlflow", "mlflow ui --backend-store-uri sqlite:///{}/mlflow.db"),
    "tensorboard": Sink(TensorBoardWriter, "tensorboard", "tensorboard --logdir {}"),
    "wandb": Sink(WandbWriter, "wandb", "wandb sync {}/*/*/wandb/offline-run-*", appends=False),
}
"""By name: the class that writes a run, and what goes with it."""
