"""Which dimensions of a cell's weights belong to its units, and which read them."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from attractor.cells import Cell
from attractor.cells.gated import WrappedCell
from attractor.cells.wrap.noise import RecurrentDropoutCell, ZoneoutCell
from attractor.continual.growing.widening import Edit, Edits, Wide
from attractor.errors import InputError

OWN, READS, INPUT, SEEN = "own", "reads", "input", "seen"
"""A dimension of the units; one that reads the state; one that reads the input; one that has a
place for each feature of the input."""

Roles = Mapping[str, tuple[str | None, ...]]

GATED: Roles = {
    "weight_ih": (OWN, INPUT),
    "weight_previous": (OWN, INPUT),
    "weight_hh": (OWN, READS),
    "weight_hr": (None, READS),
    "bias": (OWN,),
    "bias_hh": (OWN,),
    "omega": (OWN,),
    "peephole": (None, OWN),
    "beta_raw": (),
    "kappa_raw": (),
}
CONNECTED: Roles = {
    "weight_gates": (OWN, INPUT),
    "weight_candidate": (OWN, INPUT),
    "bias": (OWN,),
    "beta_raw": (),
    "kappa_raw": (),
    "connection.weight": (SEEN, READS),
    "connection.alpha_raw": (SEEN,),
    "connection.omega_raw": (SEEN,),
    "connection.weight_gate": (SEEN, INPUT),
    "connection.bias_gate": (SEEN,),
}
CONTROLLED: Roles = {
    "controller.weight_ih": (OWN, INPUT),
    "controller.weight_rh": (OWN, None),
    "controller.weight_hh": (OWN, READS),
    "controller.bias": (OWN,),
    "read_ih": (None, INPUT),
    "read_hh": (None, READS),
    "read_bias": (None,),
    "write_ih": (None, INPUT),
    "write_hh": (None, READS),
    "write_bias": (None,),
    "content_ih": (None, INPUT),
    "content_hh": (None, READS),
    "address": (None, None),
}
ROLES: dict[str, Roles] = {
    **dict.fromkeys(("RNNCell", "LSTMCell", "GRUCell", "JANETCell", "FastGRNNCell"), GATED),
    **dict.fromkeys(
        ("DecayNetCell", "DecayNetGRUCell", "LSTM1997Cell", "TLSTMCell", "SRUCell"), GATED
    ),
    **dict.fromkeys(("IRCGRUCell", "IRCLSTMCell", "IRCFastGRNNCell"), CONNECTED),
    **dict.fromkeys(("IHCGRUCell", "IHCLSTMCell"), CONNECTED),
    **dict.fromkeys(("NTMCell", "DNTMCell"), CONTROLLED),
    "IRCSRUCell": {**CONNECTED, "weight_in": (OWN, INPUT)},
    "IRCTLSTMCell": {**CONNECTED, "weight_in": (OWN, INPUT)},
    "NRUCell": {**GATED, "weight_mh": (OWN, None), "weight_heads": (None, READS)},
    "StatRUCell": {
        "weight_ih": (None, INPUT),
        "weight_r": (None, None),
        "weight_m": (None, None),
        "weight_h": (OWN, None),
        "bias": (None,),
        "bias_r": (None,),
        "bias_h": (OWN,),
    },
    "TARDISCell": {
        "attention_ih": (None, INPUT),
        "attention_hh": (None, READS),
        "attention_mh": (None, None),
        "attention_uh": (None, None),
        "attention_bias": (None,),
        "attention_out": (None, None),
        "weight_ih": (OWN, INPUT),
        "weight_hh": (OWN, READS),
        "weight_rh": (OWN, None),
        "bias": (OWN,),
        "content_hh": (None, READS),
        "content_bias": (None,),
        "output_hh": (OWN, READS),
        "output_rh": (OWN, None),
        "output_bias": (OWN,),
        "inverse_temperature_hh": (None, READS),
        "inverse_temperature_bias": (None,),
    },
}
"""Of each cell that can grow, what the dimensions of its weights are."""

BLOCKS: dict[str, dict[str, int]] = {
    "NRUCell": {"weight_ih": 1, "weight_mh": 1, "bias": 1},
    "TARDISCell": {"weight_ih": 4, "weight_hh": 4, "weight_rh": 4, "bias": 4},
}
"""How many blocks of units come first, where other rows follow."""

PASSING = frozenset({"SRUCell", "IRCSRUCell", "IRCTLSTMCell"})
"""Cells that let their input past the gates, unit by unit, where it has as many features."""

REFUSED = {
    "ClockworkCell": "its units are in modules with a clock each, in which copies do not stay",
    "EURNNCell": "its matrix is a rotation, and one that shares out copies of units is not",
    "FullURNNCell": "its matrix is unitary, and one that shares out copies of units is not",
    "GORUCell": "its matrix is a rotation, and one that shares out copies of units is not",
    "URNNCell": "its matrix is unitary, and one that shares out copies of units is not",
}


def edits_of(cell: nn.Module, inputs: Wide, units: Wide) -> dict[str, Edits]:
    """What becomes of each weight of a cell that reads a wider input and has more units."""
    inner, prefix = _inner(cell)
    kind = type(inner).__name__
    if kind not in ROLES:
        why = REFUSED.get(kind, "what its weights read is not known")
        raise InputError(
            f"expected a cell that can be made wider and stay what it is, but got {kind}: {why}. "
            f"Try one of {', '.join(sorted(ROLES))}."
        )
    if isinstance(getattr(inner, "norm", None), nn.Module):  # a normaliser, not an exponent
        raise _normalised(kind)
    n = inner.hidden_size
    if kind in PASSING:
        if inner.input_size != n and len(units.units) == len(inputs.units):
            raise InputError(
                f"expected {kind} to keep another number of units than it has inputs, "
                f"{len(inputs.units)}, since only then it projects them, but got hidden_size="
                f"{len(units.units)}. Try {len(units.units) + 1}."
            )
        if inner.input_size == n and len(inputs.units) != len(units.units):
            raise InputError(
                f"expected {kind} to have another number of units than inputs, since its input "
                f"passes its {n} units one by one, but it has as many. Try an input of another "
                "size."
            )
    projected = kind in ("IRCSRUCell", "IRCTLSTMCell") and inner.weight_in is not None
    seen = units if projected else inputs
    found: dict[str, Edits] = {}
    for name, parameter in inner.named_parameters():
        roles = ROLES[kind][name]
        blocks = BLOCKS.get(kind, {}).get(name)
        reads = None if inner.output_size != n and name == "weight_hh" else units
        spaces = {INPUT: inputs if name == "weight_in" else seen, READS: reads}
        edits: list[Edit | None] = []
        for role, size in zip(roles, parameter.shape, strict=True):
            if role == OWN:
                edits.append(Edit("copy", units.repeated(size, blocks)))
            elif role == SEEN:
                edits.append(Edit("copy", seen.repeated(size)))
            else:
                wide = None if role is None else spaces[role]
                edits.append(None if wide is None else Edit("share", wide))
        found[prefix + name] = tuple(edits)
    return found


def resized(cell: nn.Module, inputs: Wide, units: Wide) -> None:
    """Let a cell know its new sizes."""
    n = _inner(cell)[0].hidden_size
    parts: Any = cell.modules()
    for one in parts:
        if getattr(one, "hidden_size", None) == n:
            one.hidden_size = len(units.units)
        if isinstance(one, Cell):
            one.input_size = len(inputs.units)


def _inner(cell: nn.Module) -> tuple[Any, str]:
    """The cell within zoneout or dropout, which treat units one by one, and where it is."""
    prefix = ""
    while isinstance(cell, WrappedCell | ZoneoutCell):
        if not isinstance(cell, RecurrentDropoutCell | ZoneoutCell):
            raise _normalised(type(cell).__name__)
        cell, prefix = cell.cell, f"{prefix}cell."
    return cell, prefix


def _normalised(kind: str) -> InputError:
    return InputError(
        "expected a cell whose units do not depend on how many there are, but got "
        f"{kind}, whose normalisation counts a copied unit twice. Try it without."
    )
