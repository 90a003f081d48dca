"""Readings become the tree: cards, slices, placements, processes, firmware, facts and the journal.

A reading is looked at as a whole by a pure rule (`rules/reconcile`) over a frozen snapshot; what it
decides is applied in one transaction that holds the rows of the nodes concerned. Samples are stored
apart (`store_values`), because their writer has its own transaction.
"""

from inventory.services.observe.bmcs import record_bmc_reading
from inventory.services.observe.changes import TreeChanges
from inventory.services.observe.nodes import record_node_reading
from inventory.services.observe.values import store_values

__all__ = ["TreeChanges", "record_bmc_reading", "record_node_reading", "store_values"]
