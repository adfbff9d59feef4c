"""Benchmarks: samplers side by side on the same work, and ratios to the least possible work."""

import os

# one core for each sampler: PyMC's and nutpie's matrix products would take all of them
os.environ.setdefault("OMP_NUM_THREADS", "1")
