"""What must hold: invariants in sentences and evidence counted straight from what is stored."""
