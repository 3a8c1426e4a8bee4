"""What assets read and write: the lake, the sources, the targets.

No rule about telemetry lives here.
"""
