"""``python -m attractor.cli`` is ``attractor``."""

from attractor.cli.main import main

main()
