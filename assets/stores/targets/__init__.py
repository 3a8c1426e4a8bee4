"""Where published windows go: one module for each kind of target, one interface."""
