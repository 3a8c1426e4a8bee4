"""Speed and memory of Lowwater, as ratios inside one run. Run by ``make bench``; never as tests."""
