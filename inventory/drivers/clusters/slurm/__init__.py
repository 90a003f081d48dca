"""Slurm: nodes, jobs bound to cards, accounting, drains, submission, accounts.

`rest` and `command` are the two ways in; `values`, `wire`, `text`, `gres`, `states`, `jobs` and `places` turn what
they give into readings and do no I/O; `reads`, `cordons`, `control` and `tenants` are the capabilities.
"""

from inventory.drivers.clusters.slurm.command import CommandDoor
from inventory.drivers.clusters.slurm.driver import SlurmCluster
from inventory.drivers.clusters.slurm.login import Login, Renew
from inventory.drivers.clusters.slurm.rest import RestDoor

__all__ = ["CommandDoor", "Login", "Renew", "RestDoor", "SlurmCluster"]
