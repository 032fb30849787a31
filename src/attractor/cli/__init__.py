"""The command line. Torch is imported inside the commands, so that ``--help`` answers at once."""

import _thread
import signal
import sys
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


def main() -> None:
    """The command `attractor`; Ctrl-C ends it with exit code 130 from its first moment on.

    An exit of our own, because Python ends itself by the signal, whoever catches the
    `KeyboardInterrupt`, if that came up inside code given as a string, as dataclasses have it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
        sys.unraisablehook = _leave_again
    from attractor.cli.commands import main as command

    command()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(130)


def _leave_again(unraisable: "UnraisableHookArgs") -> None:
    """Leave a moment later where Ctrl-C came inside a finalizer, whose exit Python throws away."""
    if isinstance(unraisable.exc_value, SystemExit | KeyboardInterrupt):
        again = Timer(0.05, _thread.interrupt_main)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(unraisable)
