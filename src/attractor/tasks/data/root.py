"""Where data sets are kept."""

import os
from pathlib import Path

import platformdirs

VARIABLE = "ATTRACTOR_DATA"
"""The environment variable that names the data root."""


def data_root(root: str | Path | None = None) -> Path:
    """The folder that holds the data sets: the one given, else `VARIABLE`, else the user's cache.

    The layout below it is torchvision's (``MNIST/raw/...``), so a folder that torchvision has
    filled can be given as it is. The folder need not exist yet.

    Example:
        >>> data_root("elsewhere").name
        'elsewhere'
    """
    chosen = root or os.environ.get(VARIABLE) or platformdirs.user_cache_path("attractor")
    return Path(chosen).expanduser()
