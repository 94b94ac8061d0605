"""Cohorts with time-to-event outcomes: data sets by name, splits without leaks, decoded images on disk.

:func:`mimic_cxr`, :func:`adni`, :func:`areds` read the files of these data sets by the label rules of FairTTE, :func:`table` a table
of your own. Each gives a :class:`Cohort`: samples, every row that was left out with its reason, and a hash of all that
determines the outcomes. The examples of methods go on with what the example of their class has made.
"""

from ._cohort import Cohort, Split
from ._images import ImageStore
from ._sources import adni, areds, mimic_cxr, table

__all__ = ["Cohort", "ImageStore", "Split", "adni", "areds", "mimic_cxr", "table"]
