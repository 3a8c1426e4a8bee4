"""What exists: thin Dagster assets, and in ``stores`` what they read and write. How is in ``transforms``."""
