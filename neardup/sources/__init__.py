"""Sources: documents from files, folders, pipes and tables, in batches, as often as wanted.

To add a format, write its reader and add its row to `formats.FORMATS`.
"""

from __future__ import annotations

from neardup.sources.formats import FORMATS, format_of, is_file_name, is_image
from neardup.sources.limits import ANY, DEFAULT, InputLimits, Limits, Tolerance
from neardup.sources.names import id_path, path_id
from neardup.sources.opening import are_texts, keep_apart, mostly_images, open_source
from neardup.sources.options import Reading
from neardup.sources.source import Located, Skipped, Source, among, values_of

__all__ = [
    "ANY",
    "DEFAULT",
    "FORMATS",
    "InputLimits",
    "Limits",
    "Located",
    "Reading",
    "Skipped",
    "Source",
    "Tolerance",
    "among",
    "are_texts",
    "format_of",
    "id_path",
    "is_file_name",
    "is_image",
    "keep_apart",
    "mostly_images",
    "open_source",
    "path_id",
    "values_of",
]
