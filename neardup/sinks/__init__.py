"""Sinks: where results go. A file appears when it is complete; until then it has another name."""
