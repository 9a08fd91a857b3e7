"""Words of programs for what is done with what they receive, and what it comes to."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from enum import Enum
from typing import Final

# what the order of arguments, or of calls, is nothing to
FREEING: Final = frozenset({
    "sum", "fsum", "max", "min", "sorted", "set", "frozenset", "add", "maximum", "minimum",
    "Counter", "heappush", "heappop", "heapify", "merge", "nlargest", "nsmallest", "any", "all",
    "update", "union", "discard", "mean", "median", "prod", "amax", "amin", "isend", "logical_and",
    "logical_or", "unique", "std", "var", "stdev", "pstdev", "variance", "pvariance", "fmean",
    "percentile", "quantile", "histogram", "bincount", "ptp", "intersection", "insort",
    "insort_left", "insort_right",
})  # fmt: skip
OF_BAGS: Final = frozenset({"len", "dict", "sort", "count", "clear", "reverse"})
INTO_BAGS: Final = frozenset({"append", "extend", "appendleft"})
# what makes one value of another, and does nothing else
MAKING: Final = frozenset({
    "len", "int", "float", "abs", "round", "bool", "complex", "tuple", "list", "dict", "str",
    "array", "asarray", "copy", "sqrt", "norm", "dot", "loads", "tobytes", "decode", "item",
    "frombuffer", "reshape", "unpack", "bytes", "pack",
})  # fmt: skip
BAG_TO_BAG: Final = frozenset({
    "list", "tuple", "iter", "chain", "from_iterable", "extend", "closing", "nullcontext", "tqdm",
    "reversed",
})  # fmt: skip
JOINING: Final = frozenset({"concatenate", "hstack"})  # arrays to one
STACKING: Final = frozenset({"vstack", "stack", "array", "asarray"})  # a row, or element, of each
TAKING: Final = frozenset({"pop", "popleft", "get", "get_nowait"})  # one element
# what does not look at the elements of an array
_SAYING: Final = frozenset({"shape", "dtype", "ndim", "nbytes", "size", "fill"})
OF_ARRAYS: Final = _SAYING | {"sum", "mean", "max", "min", "prod", "any", "all", "std", "var"}
ADDING: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)
COMMUTING: Final = (ast.BitOr, ast.BitAnd, ast.BitXor)
LITTLE: Final = (ast.AugAssign, ast.Break, ast.Continue, ast.Pass, ast.Raise, ast.Assert)
# of operations that may be handed to `reduce`, or have a method `at`
FOLDING: Final = frozenset({
    "add", "mul", "multiply", "max", "min", "maximum", "minimum", "fmax", "fmin", "or_", "and_",
    "xor", "gcd", "lcm", "logical_or", "logical_and", "bitwise_or", "bitwise_and", "bitwise_xor",
})  # fmt: skip
ONLY_AT: Final = frozenset({"subtract"})
# of a comprehension: what adds up, or keeps the largest
SUMMING: Final = frozenset({"sum", "fsum", "max", "min", "prod", "mean", "any", "all"})
HASHES: Final = ("sha", "md5", "blake2", "hmac", "new", "crc")  # begin names of what makes one
SENDING: Final = frozenset({"send", "Send", "isend", "Isend", "ssend", "Ssend"})
# where the messages of requests stand in what a call of several of them returns
MESSAGE_AT: Final = {
    "test": 1,
    "testall": 1,
    "waitany": 1,
    "testany": 2,
    "waitsome": 1,
    "testsome": 1,
}
ONE_OVER: Final = frozenset({"Waitany"})  # return the place of a request that is over
SOME_OVER: Final = frozenset({"Waitsome", "Testsome"})  # or the places of several
MANY: Final = frozenset({"testall", "waitsome", "testsome"})
ENDING: Final = frozenset({"append", "Cancel", "cancel", "Free", "free"})  # of requests
TARGETS: Final = frozenset({"dest", "source"})  # each gets its own, in whatever order


class Use(Enum):
    """What a line does with what it receives."""

    ADDED = "added or multiplied: of numbers in any order the same"
    ORDER_FREE = "in any order the same: a largest, a set"
    ANYTHING = "nothing is known"


def worst(uses: Iterable[Use]) -> Use:
    """What all uses come to; without any the order is nothing."""
    found = set(uses)
    return next((use for use in (Use.ANYTHING, Use.ADDED) if use in found), Use.ORDER_FREE)
