"""Objects of the API as far as we use them. Decoding skips what is not named here."""

from datetime import datetime

from msgspec import Raw, Struct, field

Quantities = dict[str, str | int]


class _Wire(Struct, rename="camel"):
    pass


class Owner(_Wire):
    """One owner of an object; `controller` is the one that makes it again."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False


class ManagedFields(_Wire):
    """Who set which fields, kept by the API server."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields_v1: Raw = Raw()


class Meta(_Wire):
    """What every object has."""

    name: str
    uid: str = ""
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[Owner] = []
    finalizers: list[str] = []

    def controller(self) -> Owner | None:
        """The owner that makes it again."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ObjectList(Struct):
    """A list, its entries left encoded. Go writes an empty list as null."""

    metadata: dict[str, str | int] = {}
    items: list[Raw] | None = None


class WatchEvent(Struct):
    """One line of a watch."""

    type: str
    object: Raw


class Versioned(Struct):
    """Anything with a version: what a bookmark is."""

    metadata: "VersionedMeta"


class VersionedMeta(_Wire):
    """The version alone."""

    resource_version: str = ""


class Condition(_Wire):
    """A condition of a pod, job or node."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class PartialObject(Struct):
    """An object's metadata alone."""

    metadata: Meta


class Taint(Struct):
    """A taint."""

    key: str
    value: str = ""
    effect: str = ""


class NodeMeta(Meta):
    """A node's metadata, with who cordoned it."""

    managed_fields: list[ManagedFields] = []


class NodeSpec(_Wire):
    """What is wanted of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeAddress(Struct):
    """One address of a node."""

    type: str
    address: str


class NodeInfo(_Wire):
    """What the kubelet tells of its machine."""

    kubelet_version: str = ""
    system_uuid: str = field(name="systemUUID", default="")
    machine_id: str = field(name="machineID", default="")


class NodeStatus(_Wire):
    """What is of a node."""

    capacity: Quantities = {}
    allocatable: Quantities = {}
    conditions: list[Condition] = []
    addresses: list[NodeAddress] = []
    node_info: NodeInfo | None = None


class Node(Struct):
    """A node."""

    metadata: NodeMeta
    spec: NodeSpec
    status: NodeStatus


class Resources(Struct):
    """What a container asks for."""

    requests: Quantities = {}
    limits: Quantities = {}


class Container(_Wire):
    """A container; `restartPolicy: Always` makes an init container a sidecar."""

    resources: Resources | None = None
    restart_policy: str = ""


class Gate(Struct):
    """What keeps a pod from being scheduled."""

    name: str = ""


class PodClaim(_Wire):
    """A claim of devices that a pod makes."""

    name: str
    resource_claim_name: str | None = None


class PodSpec(_Wire):
    """What is wanted of a pod."""

    node_name: str = ""
    containers: list[Container] | None = None
    init_containers: list[Container] = []
    priority_class_name: str = ""
    priority: int | None = None
    scheduling_gates: list[Gate] = []
    active_deadline_seconds: int | None = None
    resource_claims: list[PodClaim] = []


class Terminated(_Wire):
    """How a container ended."""

    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class Waiting(Struct):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class ContainerState(Struct):
    """One of the two that we need; running has neither."""

    terminated: Terminated | None = None
    waiting: Waiting | None = None


class Device(_Wire):
    """One device that the kubelet gave to a container."""

    resource_id: str = field(name="resourceID", default="")
    health: str = ""


class Devices(Struct):
    """The devices of one resource."""

    name: str
    resources: list[Device] = []


class ContainerStatus(_Wire):
    """What is of a container."""

    name: str = ""
    state: ContainerState | None = None
    restart_count: int = 0
    allocated_resources_status: list[Devices] = []


class PodClaimStatus(_Wire):
    """Which claim was made for a pod."""

    name: str
    resource_claim_name: str | None = None


class PodStatus(_Wire):
    """What is of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    start_time: datetime | None = None
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resource_claim_statuses: list[PodClaimStatus] = []


class Pod(Struct):
    """A pod."""

    metadata: Meta
    spec: PodSpec
    status: PodStatus


class UsedSpec(_Wire):
    """As much of a pod as tells what it takes from its node."""

    node_name: str = ""
    containers: list[Container] | None = None
    init_containers: list[Container] = []


class UsingPod(Struct):
    """A pod that takes something from its node."""

    spec: UsedSpec


class PodTemplate(Struct):
    """What a job's pods will be."""

    spec: PodSpec
    metadata: dict[str, Raw] = {}


class JobSpecOnWire(_Wire):
    """What is wanted of a job."""

    template: PodTemplate
    suspend: bool = False
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    active_deadline_seconds: int | None = None


class Uncounted(Struct):
    """UIDs of pods that ended and are not in the numbers yet."""

    succeeded: list[str] | None = None


class JobStatus(_Wire):
    """What is of a job."""

    conditions: list[Condition] = []
    start_time: datetime | None = None
    completion_time: datetime | None = None
    active: int = 0
    succeeded: int = 0
    terminating: int | None = None
    uncounted_terminated_pods: Uncounted | None = None


class Job(Struct):
    """A job."""

    metadata: Meta
    spec: JobSpecOnWire
    status: JobStatus


class Scale(Struct):
    """How many replicas are wanted."""

    spec: "ScaleSpec"


class ScaleSpec(Struct):
    """The number; Go leaves 0 out."""

    replicas: int = 0


class Named(Struct):
    """Any object, its spec left encoded."""

    metadata: Meta
    spec: Raw = Raw()
