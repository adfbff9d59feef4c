"""Does the sampler draw from the target? ``make trust`` asks, and writes ``docs/trust.md``.

Reading order: ``targets`` (densities with exact draws), ``onestep`` (exact draws, one transition
each), ``breaks`` (wrong samplers), ``models`` (PyMC models with known answers), ``chains`` (long
and many chains), ``outside`` (no draw outside), ``peers`` (other exact samplers), ``page``.
"""
