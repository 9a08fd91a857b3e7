from ompy.addons.pkl5 import ANY_SOURCE as ANY_SOURCE
from ompy.addons.pkl5 import ANY_TAG as ANY_TAG
from ompy.addons.pkl5 import PROC_NULL as PROC_NULL
from ompy.addons.pkl5 import ROOT as ROOT
from ompy.addons.pkl5 import Comm as Comm
from ompy.addons.pkl5 import Intercomm as Intercomm
from ompy.addons.pkl5 import Intracomm as Intracomm
from ompy.addons.pkl5 import Message as Message
from ompy.addons.pkl5 import Pickle as Pickle
from ompy.addons.pkl5 import Request as Request
from ompy.addons.pkl5 import Status as Status
from ompy.addons.pkl5 import pickle as pickle

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "PROC_NULL",
    "ROOT",
    "Comm",
    "Intercomm",
    "Intracomm",
    "Message",
    "Pickle",
    "Request",
    "Status",
    "pickle",
]
