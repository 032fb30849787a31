"""The command line. Torch is imported inside the commands, so that ``--help`` answers at once."""

from attractor.cli.main import main as main
