"""From a PyMC model to its region: bounds, orders and joint constraints, each as ``g(x) > 0``.

To be read in this order: ``conditions`` (boolean graphs as slacks), ``indicators`` (where a log
density is ``-inf``), ``support`` (of one variable), ``constraint`` (and the region that constraints
make), ``read`` (all of a model), ``feasibility`` and ``search`` (whether there is a point inside),
``diagnose`` (what is wrong with a model).
"""
