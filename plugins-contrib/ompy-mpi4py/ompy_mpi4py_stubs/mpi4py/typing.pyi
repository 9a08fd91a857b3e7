from ompy.typing import Aint as Aint
from ompy.typing import Bottom as Bottom
from ompy.typing import BufSpec as BufSpec
from ompy.typing import BufSpecB as BufSpecB
from ompy.typing import BufSpecV as BufSpecV
from ompy.typing import BufSpecW as BufSpecW
from ompy.typing import Buffer as Buffer
from ompy.typing import Count as Count
from ompy.typing import Displ as Displ
from ompy.typing import InPlace as InPlace
from ompy.typing import Offset as Offset
from ompy.typing import SupportsBuffer as SupportsBuffer
from ompy.typing import SupportsCAI as SupportsCAI
from ompy.typing import SupportsDLPack as SupportsDLPack
from ompy.typing import TargetSpec as TargetSpec
from ompy.typing import TypeSpec as TypeSpec

__all__ = [
    "Aint",
    "Bottom",
    "BufSpec",
    "BufSpecB",
    "BufSpecV",
    "BufSpecW",
    "Buffer",
    "Count",
    "Displ",
    "InPlace",
    "Offset",
    "SupportsBuffer",
    "SupportsCAI",
    "SupportsDLPack",
    "TargetSpec",
    "TypeSpec",
]
