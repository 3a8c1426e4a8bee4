"""Evidence: violations counted straight from what is stored, by SQL that no transform shares."""
