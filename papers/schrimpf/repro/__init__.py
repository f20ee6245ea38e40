"""The experiments of paper 004: the machine and its locks, data structures, txbench."""

from . import locks, structures, txbench  # noqa: F401
from .runs import FAMILY

FAMILIES = (txbench.FAMILY, FAMILY)
