"""All commands of `attractor`, and what it answers to mistakes."""

import logging
import os
import sys
from typing import Annotated

import typer

from attractor.cli.analyse import analyse
from attractor.cli.bench import app as bench
from attractor.cli.compare import compare
from attractor.cli.data import app as data
from attractor.cli.doctor import doctor
from attractor.cli.figure import figure
from attractor.cli.fit import fit
from attractor.cli.list import list_
from attractor.cli.meta import app as meta
from attractor.cli.predict import predict
from attractor.cli.report import report
from attractor.cli.reproduce import reproduce
from attractor.cli.run import run
from attractor.cli.sweep import sweep
from attractor.cli.text import Formatter, warn
from attractor.cli.track import track
from attractor.cli.verify import verify
from attractor.errors import InputError, RunError

SHARED = "run"
"""The one command that processes of torchrun share; each would do all of any other."""

app = typer.Typer(
    help="Memory that lasts: recurrent cells, learned optimisers and continual learning.",
    epilog="Example: attractor run demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", epilog="Example: attractor run demo --set train.steps=200 --only LSTM")(run)
app.command(
    "sweep", epilog="Example: attractor sweep demo --grid model.hidden_size=16,32 --seeds 0-1"
)(sweep)
app.command("reproduce", epilog="Example: attractor reproduce table-6.1 --budget quick")(reproduce)
app.command("fit", epilog="Example: attractor fit ECG5000_TRAIN.tsv --cell nru --out model")(fit)
app.command("compare", epilog="Example: attractor compare ECG5000_TRAIN.tsv --seconds 5")(compare)
app.command("predict", epilog="Example: attractor predict model ECG5000_TEST.tsv")(predict)
app.command("verify", epilog="Example: attractor verify runs/demo/lstm-0-*")(verify)
app.command("list", epilog="Example: attractor list cells")(list_)
app.command("report", epilog="Example: attractor report runs/demo -o report.html")(report)
app.command("track", epilog="Example: attractor track runs/demo --to tensorboard")(track)
app.command("analyse", epilog="Example: attractor analyse cobweb --map 'tanh(3*x)'")(analyse)
app.command("figure", epilog="Example: attractor figure decaynet-2 --out figure.svg")(figure)
app.add_typer(bench, name="bench")
app.add_typer(meta, name="meta")
app.add_typer(data, name="data")
app.command("doctor", epilog="Example: attractor doctor")(doctor)


def _version(asked: bool) -> None:
    if asked:
        from attractor import __version__

        typer.echo(f"attractor {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more, on stderr.")] = False,
) -> None:
    level = logging.INFO if verbose else logging.WARNING
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter("%(levelname)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    if context.invoked_subcommand != SHARED and "TORCHELASTIC_RUN_ID" in os.environ:
        from attractor.team import refuse_together  # torch, for which --help need not wait

        refuse_together(f"attractor {context.invoked_subcommand}")


def main() -> None:
    """Run the command; a mistake gets one sentence and exit code 2, a failure exit code 1."""
    try:
        app()
    except InputError as error:
        warn(error)
        sys.exit(2)
    except RunError as error:
        warn(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # the reader of our output, such as head, has seen enough
        sys.stderr.close()
        sys.exit(1)
