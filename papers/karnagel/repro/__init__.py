"""The experiments of paper 001: its models (table 1, figure 7, section 5.1) and its indexes."""

from . import analysis, indexes  # noqa: F401
from .runs import FAMILY

FAMILIES = (FAMILY,)
