"""Another name of :mod:`fairtte.stats`."""

from .stats import Friedman, SignedRank, cd_diagram, friedman, holm, nemenyi, wilcoxon

__all__ = ["Friedman", "SignedRank", "cd_diagram", "friedman", "holm", "nemenyi", "wilcoxon"]
