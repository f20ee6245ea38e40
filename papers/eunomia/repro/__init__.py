"""The experiments of paper 003: its figures 2 to 18 and its memory overheads."""

from . import memory, scaling, skew, tpcc  # noqa: F401
from .runs import FAMILY

FAMILIES = (FAMILY,)
