"""``python -m attractor`` is ``attractor``."""

from attractor.cli import main

main()
