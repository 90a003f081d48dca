"""PostgreSQL and Redis from wheels, as children of this process, when no URL is configured.

Both listen on sockets only, in a folder that the service's user alone can enter. PostgreSQL refuses
to run as root; then it runs as the system user `sensaka`, and where that user can't reach the
checkout (a clone below /root, say) its data and binaries live in /var/lib/sensaka. The kernel ends
both when this process dies (PR_SET_PDEATHSIG), so a crash leaves no orphan.
"""

from sensaka.embedded.layout import Layout, Secrets, reachable_by_others, secrets
from sensaka.embedded.postgresql import PostgreSQL
from sensaka.embedded.processes import ServiceError, arm_death_signal, die_with_parent, end_process
from sensaka.embedded.redis_server import Redis

__all__ = [
    "Layout",
    "PostgreSQL",
    "Redis",
    "Secrets",
    "ServiceError",
    "arm_death_signal",
    "die_with_parent",
    "end_process",
    "reachable_by_others",
    "secrets",
]
