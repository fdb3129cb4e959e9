"""`python -m bench [name ...]`: one server, schedules, or a cluster (`cluster-...`); all of them without a name."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench import cluster, idle, lateness, pages, pings, schedules, sustained

BENCHES: dict[str, Callable[[], None]] = {
    "burst": lateness.burst,
    "steady": lateness.steady,
    "idle": idle.idle,
    "startup": idle.startup,
    "schedules": schedules.schedules,
    "restart": schedules.restart,
    "pings": pings.pings,
    "silence": pings.silence,
    "idle-monitors": pings.idle_monitors,
    "cluster-pings": pings.cluster_pings,
    "cluster-silence": pings.cluster_silence,
    "cluster-idle-monitors": pings.cluster_idle_monitors,
    "cluster-burst": cluster.burst,
    "cluster-steady": cluster.steady,
    "cluster-sustained": sustained.sustained,
    "cluster-two-nodes": cluster.two_nodes,
    "cluster-fairness": cluster.fairness,
    "cluster-million": cluster.million,
    "cluster-claim": cluster.claim,
    "cluster-pages": pages.pages,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHES:
        BENCHES[name]()
