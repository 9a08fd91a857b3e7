from ompy.addons.bench import futures as futures
from ompy.addons.bench import helloworld as helloworld
from ompy.addons.bench import main as main
from ompy.addons.bench import pingpong as pingpong
from ompy.addons.bench import ringtest as ringtest

__all__ = [
    "futures",
    "helloworld",
    "main",
    "pingpong",
    "ringtest",
]
