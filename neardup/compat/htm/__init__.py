"""The document encoder of an HTM library, with its SDRs, their metrics and its random numbers.

By default every bit is the original's. `corrected=True` fixes four faults (docs/compat/htm.md shows them side
by side); `order=` lets the order of tokens count. Written from its outputs, its tests and its documentation.
"""

from neardup.compat.htm.encoder import SimHashDocumentEncoder, SimHashDocumentEncoderParameters
from neardup.compat.htm.metrics import ActivationFrequency, Metrics, Overlap, Sparsity
from neardup.compat.htm.random import Random
from neardup.compat.htm.sdr import SDR, overlap

__all__ = [
    "SDR",
    "ActivationFrequency",
    "Metrics",
    "Overlap",
    "Random",
    "SimHashDocumentEncoder",
    "SimHashDocumentEncoderParameters",
    "Sparsity",
    "overlap",
]
