"""Is what we read and sample the model? ``make fuzz`` asks, of random models.

Reading order: ``models`` (a random model as source text), ``check`` (region and draws against
``model.logp()``), ``work`` (one model, and a failure as a small script), ``__main__``.
"""
