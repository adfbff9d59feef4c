"""What a process does with one model, and a failure as a short script."""

import pytensor

from fuzz.check import judge
from fuzz.models import script, write_model


def interpret():
    """Keep PyTensor from compiling every operation to C, whatever the mode, and from noting where.

    Of the time that reading takes, a fifth goes into the traces of where each node was made.
    """
    pytensor.config.cxx = ""
    pytensor.config.traceback__limit = pytensor.config.traceback__compile_limit = 0


def run_one(check, seed):
    """The verdict on one model, and the script where it fails."""
    statements = write_model(seed)
    verdict = judge(statements, check, seed)
    failed = verdict.outcome == "failed"
    return verdict, failing_script(statements, check, seed, verdict.reason) if failed else None


def failing_script(statements, check, seed, reason):
    """A short script that fails for a reason of the same kind."""
    kind = _kind(reason)

    def fails(rest):
        verdict = judge(rest, check, seed)
        return verdict.outcome == "failed" and _kind(verdict.reason) == kind

    name = check.__name__
    return (
        f"{script(_shrink(statements, fails))}\n"
        f"from fuzz.check import {name}\n\n{name}(model, {seed})\n"
    )


def _kind(reason):
    """The class of an error."""
    return reason.partition(":")[0]


def _shrink(statements, fails):
    """Leave out statements for as long as the rest fails."""
    for k in reversed(range(len(statements))):
        rest = [*statements[:k], *statements[k + 1 :]]
        if fails(rest):
            return _shrink(rest, fails)
    return statements
