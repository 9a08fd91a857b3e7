from ompy.addons.sync import Condition as Condition
from ompy.addons.sync import Counter as Counter
from ompy.addons.sync import Mutex as Mutex
from ompy.addons.sync import Semaphore as Semaphore
from ompy.addons.sync import Sequential as Sequential

__all__ = [
    "Condition",
    "Counter",
    "Mutex",
    "Semaphore",
    "Sequential",
]
