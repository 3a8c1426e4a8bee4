"""What each of many graces would have meant for a stream, and which to choose.

Belongs here: the sweep and the advice. What was measured is `transforms.lateness`.
"""
