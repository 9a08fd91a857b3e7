"""Where the report goes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from ompy.mca.parameter import Values

from ompy_pml_monitoring import export, table
from ompy_pml_monitoring.traffic import Traffic

STREAMS: Final = ("stderr", "stdout")
FORMS: Final[dict[str, Callable[[Traffic, int], str]]] = {
    ".json": lambda traffic, _: export.as_json(traffic),
    ".csv": lambda traffic, _: export.as_csv(traffic),
    ".txt": table.text,
}


def show(traffic: Traffic, values: Values) -> None:
    """Write the report to where `pml_monitoring_output` says, in one piece.

    A bad name, or a file that cannot be written, costs nobody the counts of a finished job: they
    go to standard error then.
    """
    where: str = values.output
    if where in STREAMS:
        _write(where, table.text(traffic, values.width))
        return
    try:
        document = _form(where)(traffic, values.width)
        with open(where, "w", encoding="utf-8") as file:
            file.write(document)
    except (OSError, ValueError) as problem:
        told = f"monitoring: pml_monitoring_output={where} cannot be written: {problem}\n"
        _write("stderr", told + table.text(traffic, values.width))


def _form(name: str) -> Callable[[Traffic, int], str]:
    """What writes the form a file's name asks for.

    Raises:
        ValueError: it asks for none.
    """
    for suffix, form in FORMS.items():
        if name.endswith(suffix):
            return form
    raise ValueError(
        f"it is not {', '.join(STREAMS)} or none, and no file that ends in {', '.join(FORMS)}"
    )


def _write(stream_name: str, text: str) -> None:
    stream = getattr(sys, stream_name)
    if stream is not None:  # a process may have none
        stream.write(text)
        stream.flush()
