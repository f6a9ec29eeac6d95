"""`python -m neardup` is the command line."""

from neardup.adapters.cli import main

main()
