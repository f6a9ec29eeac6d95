"""Foreign interfaces: they translate and call a stage, and decide nothing."""
