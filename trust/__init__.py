"""Does the sampler draw from the target? ``make trust`` asks, and writes ``docs/trust.md``.

Reading order: ``closed`` (functions for the kernels), ``targets`` (densities with exact draws),
``onestep`` (exact draws, one transition each; draws outside are counted), ``breaks`` (wrong
samplers), ``models`` (PyMC models with known answers), ``chains`` (long chains), ``peers`` (other
exact samplers), ``results`` and ``page``.
"""
