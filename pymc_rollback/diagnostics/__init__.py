"""What the constraints of a model do: how probable they are, which bind, and pictures of both.

Reading order: ``errors`` (Monte Carlo errors), ``wider`` (a model without some of its constraints),
``nested`` (small probabilities, level by level), ``probability`` (prior, posterior, Bayes factor);
``draws`` (what was sampled, checked), ``density`` (of a slack at its wall), ``walls`` (the table of
what binds); ``plots`` and ``slices`` (pictures).
"""
