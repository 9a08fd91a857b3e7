"""Places in a line, of which some are free: the one of a number is found in few steps.

A Fenwick tree: the sum at an index is of the places that its lowest set bit spans, so counting,
finding and changing one take as many steps as the number of places has bits.

Source: Fenwick, A new data structure for cumulative frequency tables, 1994.
"""

from __future__ import annotations


class FreePlaces:
    """Places 0, 1, ... in the order in which they were made.

    Attributes:
        free: how many are.
    """

    __slots__ = ("_sums", "free")

    def __init__(self) -> None:
        """No places."""
        self._sums = [0]  # the first is of no place
        self.free = 0

    def append(self, *, free: bool) -> int:
        """Make one more. Returns it."""
        sums, index, total = self._sums, len(self._sums), int(free)
        part, span = index - 1, index & -index
        while part > index - span:
            total += sums[part]
            part -= part & -part
        sums.append(total)
        self.free += free
        return index - 1

    def change(self, place: int, *, free: bool) -> None:
        """Make a place free that is not, or the other way round."""
        step, sums = (1 if free else -1), self._sums
        index = place + 1
        while index < len(sums):
            sums[index] += step
            index += index & -index
        self.free += step

    def find(self, number: int) -> int:
        """The free place that has so many free ones before it."""
        sums, index = self._sums, 0
        step = 1 << (len(sums) - 1).bit_length()
        while step:
            there = index + step
            if there < len(sums) and sums[there] <= number:
                index, number = there, number - sums[there]
            step >>= 1
        return index
