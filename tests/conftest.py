"""Set-up shared by all tests."""

from hypothesis import settings

# Shared machines stall: a slow example is not a wrong one.
settings.register_profile("neardup", deadline=None, max_examples=60)
settings.load_profile("neardup")
