"""Experiments: configured in TOML, run, killed, resumed, and read back."""

from attractor.experiments.config import ExperimentConfig as ExperimentConfig
from attractor.experiments.config import RunConfig as RunConfig
from attractor.experiments.results import summary as summary
from attractor.experiments.saved import load_runs as load_runs
from attractor.experiments.table import EXPERIMENTS as EXPERIMENTS
from attractor.experiments.table import load as load
from attractor.experiments.train import run_all as run_all
