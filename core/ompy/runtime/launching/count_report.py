"""The table of performance variables that is shown at the end of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table_of_counts(counted: Mapping[int, Mapping[str, int]]) -> Sequence[str]:
    """A line for each variable, in the order of their names.

    Args:
        counted: by rank, the value of each variable.

    Returns:
        A heading and the lines; nothing where nobody has told anything.
    """
    rows: list[tuple[str, ...]] = [("variable", "sum", "least", "most")]
    for name in sorted({name for values in counted.values() for name in values}):
        values = [each[name] for each in counted.values() if name in each]
        rows.append((name, *(str(number) for number in (sum(values), min(values), max(values)))))
    if len(rows) == 1:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
