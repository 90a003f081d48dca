"""The configuration files of the lab's Slurm: twelve nodes of four shapes on one machine."""

import socket
from dataclasses import dataclass
from pathlib import Path

H100 = tuple(f"h100-{number:03d}" for number in range(1, 7))
MI300X = tuple(f"mi300x-{number:03d}" for number in range(1, 5))
NODES = (*H100, *MI300X, "mixed-001", "mixed-002")
CLUSTER = "lab"


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of one lab."""

    controller: int
    database_daemon: int
    database: int
    rest: int
    nodes: tuple[int, ...]


def free_ports() -> Ports:
    """Ports that are free at the moment; all are held until the last one is found."""
    probes = [socket.socket() for _ in range(4 + len(NODES))]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        numbers = [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
    return Ports(*numbers[:4], nodes=tuple(numbers[4:]))


def slurmdbd_conf(folder: Path, ports: Ports) -> str:
    return f"""
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/etc/jwt.key
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports.database_daemon}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports.database}
StorageUser=slurm
StoragePass=lab
StorageLoc=accounting
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd.pid
"""


def gres_conf(folder: Path) -> str:
    """Cards in a few shapes: whole ones, a MIG type beside them, shards and MPS on two of them."""
    device = f"{folder}/dev/nvidia"
    return f"""
AutoDetect=off
NodeName=h100-[001-006] Name=gpu Type=h100 File={device}[0-3] Cores=0-47 Flags=nvidia_gpu_env
NodeName=h100-[001-006] Name=gpu Type=h100 File={device}[4-7] Cores=48-95 Flags=nvidia_gpu_env
NodeName=mi300x-[001-004] Name=gpu Type=mi300x File={folder}/dev/mi[0-7] Flags=amd_gpu_env
NodeName=mixed-[001-002] Name=gpu Type=h100 File={device}[0-1]
NodeName=mixed-[001-002] Name=gpu Type=a100_3g.20gb File={device}[2-3]
NodeName=mixed-001 Name=shard Count=4 File={device}0
NodeName=mixed-001 Name=shard Count=4 File={device}1
NodeName=mixed-002 Name=mps Count=100 File={device}0
NodeName=mixed-002 Name=mps Count=100 File={device}1
"""


def slurm_conf(folder: Path, ports: Ports) -> str:
    host = socket.gethostname().split(".")[0]
    lines = [_CONTROLLER.format(folder=folder, host=host, ports=ports, cluster=CLUSTER)]
    shape = "Sockets=2 CoresPerSocket=48 ThreadsPerCore=1 RealMemory=2000000"
    for name, port in zip(NODES, ports.nodes, strict=True):
        lines.append(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {shape} {_shape(name)} State=UNKNOWN"
        )
    options = "DefaultTime=00:10:00 DefMemPerCPU=1000 State=UP"
    lines += [
        f"PartitionName=h100 Nodes=h100-[001-006] Default=YES MaxTime=7-00:00:00 PriorityTier=10 {options}",
        f"PartitionName=mi300x Nodes=mi300x-[001-004] MaxTime=7-00:00:00 PriorityTier=10 {options}",
        f"PartitionName=all Nodes=ALL MaxTime=1-00:00:00 PriorityTier=1 {options}",
    ]
    return "\n".join(lines) + "\n"


def _shape(name: str) -> str:
    kind = name.rpartition("-")[0]
    if kind == "mixed":
        shared = "shard:8" if name.endswith("1") else "mps:200"
        return f"Gres=gpu:h100:2,gpu:a100_3g.20gb:2,{shared} Feature=nvidia,mixed Weight=30"
    return f"Gres=gpu:{kind}:8 Feature={kind} Weight={10 if kind == 'h100' else 20}"


_CONTROLLER = """
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports.controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={folder}/etc/jwt.key
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
SwitchType=switch/none
MpiDefault=none
ReturnToService=1
MailProg=/bin/true
SlurmdParameters=config_overrides
TreeWidth=65533
SlurmctldTimeout=60
SlurmdTimeout=10
KillWait=2
MinJobAge=300
MessageTimeout=20
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=100000,preempt_youngest_first
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu,shard,mps
PriorityType=priority/multifactor
PriorityWeightQOS=1000
PreemptType=preempt/qos
PreemptMode=REQUEUE
JobRequeue=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports.database_daemon}
AccountingStoragePass={folder}/run/munge.socket
AccountingStorageEnforce=associations,limits,qos,safe
AccountingStorageTRES=gres/gpu,gres/gpu:h100,gres/gpu:mi300x,gres/shard
JobCompType=jobcomp/none
"""
