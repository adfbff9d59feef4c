"""Chains in threads: run side by side, looked at, interrupted."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

from pymc_rollback.progress import ProgressBars
from pymc_rollback.runner import Runner
from pymc_rollback.settled import CHECKS, has_settled

LOOK = 0.1
"""Seconds between two looks at the chains."""

PATIENCE = 1.0
"""Seconds that an interrupt waits for chains to end the batches that they are in."""


class Crew:
    """Chains that run side by side.

    Parameters
    ----------
    runners
        The chains.
    workers
        How many run at the same time.
    bars
        Where progress is shown.

    Attributes
    ----------
    errors
        What each chain has failed with, if it has. Those that an interrupt stopped have failed with
        it.
    """

    def __init__(self, runners: Sequence[Runner], workers: int, bars: ProgressBars) -> None:
        self.runners, self.workers, self.bars = runners, workers, bars
        self.errors: list[BaseException | None] = [None] * len(runners)
        self._left_out = 0

    def warm_up(self) -> None:
        """Draw until the warm-up is done, and go no further.

        Chains wait for each other, so that the draws do not depend on which of them is faster.
        """
        most = self.runners[0].tune
        for check in CHECKS:
            if check > most:
                return
            self.advance(check)
            if self._running and has_settled([r.record for r in self._running]):
                self._left_out = most - check
                for runner in self.runners:
                    runner.end_warmup_at(check)
                return

    def advance(self, until: int | None = None) -> None:
        """Run all chains that have not failed until they have so many draws, or all."""
        stop = Event()
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="rb.sample")
        started = {
            pool.submit(runner.advance, stop, until or runner.total): chain
            for chain, runner in enumerate(self.runners)
            if self.errors[chain] is None
        }
        interrupt = None
        try:
            while wait(started, LOOK).not_done:
                self._show()
        except KeyboardInterrupt as error:
            interrupt = error
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
        if interrupt is not None:
            wait(started, PATIENCE)
        self._show()
        for future, chain in started.items():
            has_ended = future.done() and not future.cancelled()
            self.errors[chain] = future.exception() if has_ended else None
            if interrupt is not None and self.runners[chain].done < self.runners[chain].total:
                self.errors[chain] = self.errors[chain] or interrupt

    @property
    def _running(self) -> list[Runner]:
        """Chains that have not failed."""
        return [r for r, error in zip(self.runners, self.errors, strict=True) if error is None]

    def _show(self) -> None:
        for chain, runner in enumerate(self.runners):
            if runner.record.draws:
                self.bars.show(chain, runner.done + self._left_out, runner.record.latest())
