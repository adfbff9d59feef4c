"""Benchmarks: ratios to another sampler, or to the least possible work, on the same machine."""
