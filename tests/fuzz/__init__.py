"""Fuzzing: what reads foreign bytes is fed with damaged ones, by the million.

`make fuzz` runs every target (`make fuzz RUNS=1000000 TARGETS="jsonl csv"` some of them, longer), each in a process
of its own; a crash, a hang or any error that is not documented ends it with the input that did it in a file.
`tests/test_fuzz.py` is the short form. To add a target, write its class and add it to `targets.TARGETS`.
"""
