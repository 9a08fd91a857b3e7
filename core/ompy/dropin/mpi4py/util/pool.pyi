from ompy.addons.pool import ApplyResult as ApplyResult
from ompy.addons.pool import AsyncResult as AsyncResult
from ompy.addons.pool import MapResult as MapResult
from ompy.addons.pool import Pool as Pool
from ompy.addons.pool import ThreadPool as ThreadPool

__all__ = [
    "ApplyResult",
    "AsyncResult",
    "MapResult",
    "Pool",
    "ThreadPool",
]
