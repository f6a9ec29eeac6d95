"""The originals under their own names: change the import line. docs/compat has a page for each."""
