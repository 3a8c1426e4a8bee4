"""What all tests share: how long and how hard Hypothesis tries, here and on a busy machine."""

import os

from hypothesis import HealthCheck, settings

# No test is timed: a deadline fails on a slow machine and says nothing about the code. CI draws
# the same examples every time; on a desk new ones are drawn.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
