"""A Kubernetes cluster in this process behind a real HTTPS port, for tests and for the simulated fleet.

It behaves as a recorded Kubernetes 1.36 does in what the driver meets: versions, pages, watches with
bookmarks, refusals, rights, quota, the default scheduler, the Job controller, budgets and kubelets.
`store`, `patches`, `kinds`, `answers` and `rights` are the API server's inside, `admission` what it says
no to, `scheduling`, `jobs`, `services` and `kubelet` the controllers, `api` and `server` the way in, and
`cluster` what others do there by hand. It runs no containers.
"""

from inventory.drivers.fake.kubernetes.server import ADMIN, KubernetesServer

__all__ = ["ADMIN", "KubernetesServer"]
