"""Inside the networks of a report: what `dynamics` sees in one run of each variant, and images."""

import base64
import logging
import struct
import traceback
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Generator, Tensor, nn

from attractor.errors import InputError
from attractor.experiments.restore import model_of, restored
from attractor.models import DRAW
from attractor.report.levels import ranked_by_levels
from attractor.report.looking import seen_in
from attractor.report.seen import Seen
from attractor.results.summary import summary
from attractor.results.variants import Group, variants
from attractor.runs.read import Run

logger = logging.getLogger(__name__)

MOST = 4
"""Variants of a chapter that are looked into, the best first."""
IMAGES = 16


@dataclass(frozen=True)
class Inside:
    """What is seen in one run: figures with their sentences, and images that it made.

    ``note`` says why there is no more, where something went wrong.
    """

    label: str
    seed: int
    seen: tuple[Seen, ...]
    images: tuple[str, ...]
    note: str = ""


def looked_into(
    runs: Sequence[Run], data: Path | None = None, *, trust: bool = False
) -> dict[str, list[Inside]]:
    """By experiment and budget, what is inside the first finished run of the best variants.

    Args:
        runs: as a report takes them.
        data: the data root.
        trust: let runs name code of a module, which is then imported and called.
    """
    parts: dict[str, list[Run]] = {}
    for run in runs:
        parts.setdefault(f"{run.experiment}/{run.budget}", []).append(run)
    return {key: [_first(one, data, trust) for one in _chosen(part)] for key, part in parts.items()}


def _chosen(runs: Sequence[Run]) -> list[Group]:
    """The variants to look into: those with a finished run, by rank."""
    runs = [ranked_by_levels(run) for run in runs]
    groups = {group.label: group for group in variants(runs)}
    return [groups[row.label] for row in summary(runs) if row.n][:MOST]


def _first(group: Group, data: Path | None, trust: bool) -> Inside:
    done = [run for run in group.runs if run.status == "done"]
    return _inside(group.label, min(done, key=lambda run: run.seed), data, trust)


def _inside(label: str, run: Run, data: Path | None, trust: bool) -> Inside:
    """What is seen in one run: as far as it can be, and in a note why not further."""
    seen: list[Seen] = []
    images: tuple[str, ...] = ()
    note = ""
    try:
        _, process = restored(run.folder, data=data, trust=trust)
        model = model_of(process).eval().cpu()
        images = tuple(gallery(model))
        if not images:
            seen.extend(seen_in(process, model))
    except InputError as error:
        note = str(error)
    except Exception as error:  # of one network, perhaps of the user's own: the page has others
        logger.info("%s", "".join(traceback.format_exception(error)))
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        note = f"It could not be looked into {'further' if seen else 'at all'} ({what})."
    return Inside(label, run.seed, tuple(seen), images, note)


def gallery(model: nn.Module, count: int = IMAGES) -> list[str]:
    """Images that a model generates from a fixed seed, each as an address of its data.

    Empty for a model that generates none.
    """
    if not isinstance(model, DRAW):
        return []
    found = model.generate(count, generator=Generator().manual_seed(0))[-1]
    return [f"data:image/png;base64,{base64.b64encode(png(one)).decode()}" for one in found]


def png(image: Tensor) -> bytes:
    """An image of shares of white ``(channels, rows, columns)``, one channel or three, as PNG.

    Example:
        >>> png(torch.zeros(1, 2, 3))[:4]
        b'\\x89PNG'
    """
    levels = (image.double().clamp(0, 1) * 255).round().to(torch.uint8)
    if levels.dim() == 2:
        levels = levels[None]
    channels, rows, columns = levels.shape
    lines = levels.permute(1, 2, 0).reshape(rows, columns * channels)
    raw = b"".join(b"\0" + bytes(line.tolist()) for line in lines)
    kind = 0 if channels == 1 else 2
    head = struct.pack(">IIBBBBB", columns, rows, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(name, body)
        for name, body in ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    )


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
