"""The native core: batches in, numpy out. Use the Python functions; these are their loops."""

__version__: str
