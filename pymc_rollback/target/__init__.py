"""What is sampled: the density and the walls of a region over one vector.

To be read in this order: ``plan`` (what is done with each variable), ``density`` (graphs),
``barrier`` and ``mirror`` (the walls in it), ``slacks`` (functions of a position), ``walls`` (all
that is known before a chain begins, in numbers), ``compile``.
"""
