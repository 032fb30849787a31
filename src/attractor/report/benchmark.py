"""What a page says about any benchmark."""

from dataclasses import dataclass

from attractor.report.figures import Figure
from attractor.results.table import Table


@dataclass(frozen=True)
class BenchmarkPart:
    """All that the template needs to show one benchmark.

    Args:
        title: its heading.
        findings: what came out, in sentences.
        warnings: what a reader must know before.
        figure: the one that says most.
        anchor: the name of its section in an address.
        lines: what it has one line or mark for.
        figure_caption: how to read it.
        tables: all numbers.
        caption: how to read them.
    """

    title: str
    findings: list[str]
    warnings: list[str]
    figure: Figure
    anchor: str
    lines: str
    figure_caption: str
    tables: list[Table]
    caption: str
