"""Proofs over what stores hold: one module for each kind of side, the engine, the repair."""
