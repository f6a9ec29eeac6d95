"""The originals under their own names: change the import line and go on. docs/compat has a page for each."""
