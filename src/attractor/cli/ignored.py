"""What is given on the command line takes part, or is refused."""

from collections.abc import Collection

import typer

from attractor.errors import InputError


def refuse_ignored(context: typer.Context, mode: str, takes: Collection[str]) -> None:
    """Refuse options that were given and have no part in what is asked.

    Args:
        context: the command that was called.
        mode: what is asked, for the error.
        takes: the parameters that have a part in it.
    """
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if given and one.name not in takes:
            raise InputError(
                f"expected no {one.opts[0]} with {mode}, but got it: it has no part there. "
                "Leave it out."
            )
