"""Compiled loops: they know numbers and functions by address, and neither PyMC nor PyTensor.

To be read in this order: ``state``, ``drift``, ``leapfrog``, ``trajectory``, ``run``. ``native``
and ``cache`` are what Numba does not offer.
"""
