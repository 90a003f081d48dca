"""How the product is let in at the fleet's doors."""

from dataclasses import dataclass

from sensaka.fleet.plan import NodePlan


@dataclass(frozen=True, slots=True)
class BmcLogin:
    """How the simulated BMCs let people in, and on which ports they listen."""

    username: str
    password: str
    redfish_port: int
    ipmi_port: int

    def port_of(self, node: NodePlan) -> int:
        """The port of a node's BMC."""
        return self.ipmi_port if node.protocol == "ipmi" else self.redfish_port


@dataclass(frozen=True, slots=True)
class SchedulerLogin:
    """How a scheduler is reached: a Slurm by address, user and key (base64), a Kubernetes by its kubeconfig."""

    scheduler: str
    address: str = ""
    username: str = ""
    jwt_key: str = ""
    kubeconfig: str = ""
