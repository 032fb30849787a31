"""``python -m attractor.cli`` is ``attractor``."""

from attractor.cli import main

main()
