"""What is sampled: the density and the walls of a region over one vector.

To be read in this order: ``plan`` (what is done with each variable), ``density`` (graphs),
``barrier`` and ``mirror`` (the walls in it), ``geometry`` (the region in numbers), ``compile``.
"""
