from ompy.addons.futures.chaining import ThenableFuture as ThenableFuture
from ompy.addons.futures.chaining import catch as catch
from ompy.addons.futures.chaining import then as then

__all__ = [
    "ThenableFuture",
    "catch",
    "then",
]
