"""What changed, for whoever wants to look again. Sent after commit; no receiver may rely on the payload.

`samples_stored`: samples were committed. `tree_changed(nodes)`: the named nodes or their cards
changed (ids). `collector_read(collector)`: a source was read or failed (id). `jobs_changed(cluster)`:
jobs, cordons or the state of a cluster changed (id).
"""

from django.dispatch import Signal

samples_stored = Signal()
tree_changed = Signal()
collector_read = Signal()
jobs_changed = Signal()
