from ompy.addons.futures.combining import collect as collect
from ompy.addons.futures.combining import compose as compose

__all__ = [
    "collect",
    "compose",
]
