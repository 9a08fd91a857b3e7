from ompy.addons.dtlib import from_numpy_dtype as from_numpy_dtype
from ompy.addons.dtlib import to_numpy_dtype as to_numpy_dtype

__all__ = [
    "from_numpy_dtype",
    "to_numpy_dtype",
]
