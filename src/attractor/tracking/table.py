"""The table of sinks."""

from attractor.tracking import mlflow, wandb
from attractor.tracking.base import Sink
from attractor.tracking.csv import CSVWriter
from attractor.tracking.tensorboard import TensorBoardWriter

SINKS: dict[str, Sink] = {
    "csv": Sink(CSVWriter, None, "ls -R {}"),
    "mlflow": Sink(
        mlflow.MLflowWriter,
        "mlflow",
        "mlflow ui --backend-store-uri sqlite:///{}/mlflow.db",
        environment=mlflow.ENVIRONMENT,
    ),
    "tensorboard": Sink(TensorBoardWriter, "tensorboard", "tensorboard --logdir {}"),
    "wandb": Sink(
        wandb.WandbWriter,
        "wandb",
        "wandb sync {}/*/*/wandb/offline-run-*",
        appends=False,
        environment=wandb.ENVIRONMENT,
    ),
}
"""By name: the class that writes a run, and what goes with it."""
