"""One chain: where it starts, what its warm-up learns, how it draws.

To be read in this order: ``options`` (what is given), ``start``, ``step_size``, ``window`` and
``metric`` (what is learnt from draws), ``warmup`` (when), ``chain``. It knows arrays and functions
of arrays, and neither PyMC nor PyTensor.
"""
