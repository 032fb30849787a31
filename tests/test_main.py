"""The package can be run as a module."""

import subprocess
import sys

from attractor import __version__


def test_python_m_attractor_is_the_command() -> None:
    command = [sys.executable, "-m", "attractor", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"attractor {__version__}\n"
