"""The command line. Torch is imported inside the commands, so that ``--help`` answers at once."""

import signal
import sys
from types import FrameType


def main() -> None:
    """The command `attractor`; Ctrl-C ends it with exit code 130 from its first moment on.

    An exit of our own, because Python ends itself by the signal, whoever catches the
    `KeyboardInterrupt`, if that came up inside code given as a string, as dataclasses have it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from attractor.cli.commands import main as command

    command()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(130)
