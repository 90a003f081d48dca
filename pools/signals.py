"""What changed, for whoever wants to look again. Sent after commit; no receiver may rely on the payload.

`catalogue_changed(kind)`: a pool, spec, tenant, quota or window was saved or removed (its kind of row).
`requests_changed(requests)`: the named requests changed (ids). `allocations_changed(cards)`: what is held
of these cards changed (ids). `usage_recorded(tenants)`: tokens or storage of these tenants (ids).
`queue_changed(pool)`: places, reasons or expected starts in a pool's queue (id). `nodes_wanted(nodes)`:
work waits for these sleeping nodes (ids). `idle_warned(cases, warning)`: the owners of these idle cases (ids) are to
be told, a first or a second time. `idle_changed(cases)`: idle cases (ids) were opened, closed or decided about.
"""

from django.dispatch import Signal

catalogue_changed = Signal()
requests_changed = Signal()
allocations_changed = Signal()
usage_recorded = Signal()
queue_changed = Signal()
nodes_wanted = Signal()
idle_warned = Signal()
idle_changed = Signal()
