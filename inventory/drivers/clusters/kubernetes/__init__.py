"""Kubernetes: nodes, pods and Jobs as runs on cards, watches, cordons, evictions, submission, namespaces.

`kubeconfig`, `connection` and `errors` are the way in; `wire`, `quantities`, `names`, `accelerators`,
`bindings`, `claims`, `owners`, `jobs`, `pods`, `nodes` and `submission` turn what comes and goes and do
no I/O; `snapshot`, `reads`, `follow`, `cordons`, `evictions`, `control`, `tenants` and `rights` are the
capabilities.
"""

from inventory.drivers.clusters.kubernetes.driver import KubernetesCluster
from inventory.drivers.clusters.kubernetes.kubeconfig import Access, KubeconfigError, access_in_cluster, access_of

__all__ = ["Access", "KubeconfigError", "KubernetesCluster", "access_in_cluster", "access_of"]
