"""The commands of ``lowwater``, a small module each: it calls what works, and shows the result."""
