"""Chains as tasks of a Dask cluster. Nothing else in the package imports Dask."""

from collections.abc import Sequence
from contextlib import nullcontext
from threading import Event
from uuid import uuid4

import cloudpickle
from distributed import Client, Future, as_completed
from threadpoolctl import threadpool_limits

from pymc_rollback.guard import PYTENSOR
from pymc_rollback.progress import ProgressBars
from pymc_rollback.runner import Runner
from pymc_rollback.step import RollbackHMC

RETRIES = 3
"""How often a chain is begun again, from the start, where its worker has died."""

_unpacked: dict[str, RollbackHMC] = {}
"""In a worker, the step of which chains are sampled now, by the name of the call."""


def check_client(client: object) -> None:
    """Raise unless something is a client of a cluster that is there."""
    if not isinstance(client, Client):
        raise ValueError(
            f"client={client!r} must be a dask.distributed.Client. Leave it out to sample in this "
            "process."
        )
    if client.status != "running":
        raise ValueError(
            f"client={client!r} is {client.status}. Make another: dask.distributed.Client(...)."
        )


def unpack(name: str, parcel: bytes) -> RollbackHMC:
    """The step in a parcel, compiled: once in each process."""
    with PYTENSOR:
        if name not in _unpacked:
            _unpacked.clear()
            _unpacked[name] = cloudpickle.loads(parcel)
            _unpacked[name].compiled()
        return _unpacked[name]


def draw_chain(name: str, parcel: bytes, packed: bytes) -> Runner:
    """Run a chain in a worker.

    Parameters
    ----------
    name, parcel
        The name of the call of ``rb.sample``, and its step.
    packed
        What a runner is made of, besides the step.
    """
    step = unpack(name, parcel)
    runner = Runner(step, *cloudpickle.loads(packed))
    alone = PYTENSOR if step.compiled().calls_back else nullcontext()
    with alone, threadpool_limits(1):
        runner.advance(Event(), runner.total)
    return runner


class ClusterCrew:
    """Chains that run in the workers of a cluster.

    Parameters
    ----------
    runners
        The chains, which are replaced by those that come back.
    client
        A client of the cluster.
    bars
        Where progress is shown.

    Attributes
    ----------
    errors
        What each chain has failed with, if it has.
    """

    def __init__(self, runners: Sequence[Runner], client: Client, bars: ProgressBars) -> None:
        self.runners, self.client, self.bars = list(runners), client, bars
        self.errors: list[BaseException | None] = [None] * len(runners)

    def warm_up(self) -> None:
        """Chains in different processes do not wait for each other."""
        raise NotImplementedError("tune='auto' with a client")

    def advance(self) -> None:
        """Run all chains, and wait for them."""
        client, name = self.client, f"rb.sample-{uuid4()}"
        # it travels to each worker once, and is still there where one of them dies
        parcel = client.scatter(cloudpickle.dumps(self.runners[0].step), broadcast=True, hash=False)
        options = {"pure": False, "retries": RETRIES}
        futures = {
            client.submit(draw_chain, name, parcel, cloudpickle.dumps(r.packed), **options): k
            for k, r in enumerate(self.runners)
        }
        try:
            for future in as_completed(list(futures)):
                self._fetch(futures[future], future)
        except KeyboardInterrupt as interrupt:
            client.cancel(list(futures))
            left = [k for k, r in enumerate(self.runners) if r.done < r.total]
            for k in left:
                self.errors[k] = self.errors[k] or interrupt

    def _fetch(self, chain: int, future: Future) -> None:
        """Take a chain that has ended, or its error."""
        self.errors[chain] = future.exception()
        if self.errors[chain] is None:
            self.runners[chain] = runner = future.result()
            self.bars.show(chain, runner.done, runner.record.latest())
