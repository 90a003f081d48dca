"""A slurmrestd with a small Slurm behind it: real HTTP, tokens, drains, a queue that moves. For tests and demos.

`controller` decides, `service` speaks; `jobs` and `places` are what there is. It offers what 24.11 offers
(v0.0.40 to v0.0.42); there are no daemons, no preemption, no heterogeneous jobs and no steps but the batch script's.
"""

from inventory.drivers.fake.slurmrestd.controller import Controller
from inventory.drivers.fake.slurmrestd.jobs import Ending, Job, Share, Wish
from inventory.drivers.fake.slurmrestd.places import Account, Layout, Node, Partition, Qos, Reservation
from inventory.drivers.fake.slurmrestd.refusals import Code, SlurmRefusal
from inventory.drivers.fake.slurmrestd.server import SlurmRestServer
from inventory.drivers.fake.slurmrestd.service import SlurmRest
from inventory.drivers.fake.slurmrestd.tokens import mint

__all__ = [
    "Account",
    "Code",
    "Controller",
    "Ending",
    "Job",
    "Layout",
    "Node",
    "Partition",
    "Qos",
    "Reservation",
    "Share",
    "SlurmRefusal",
    "SlurmRest",
    "SlurmRestServer",
    "Wish",
    "mint",
]
