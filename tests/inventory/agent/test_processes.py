"""Names, users and owners of processes from a /proc of our own (I4)."""

import os
import pwd
from pathlib import Path

import pytest

from inventory.agent.processes import ProcessTable, UserNames
from inventory.observations import ProcessReading

C = "3f4b" * 16


def process(root: Path, pid: int, *, cgroup: str = "", comm: str = "python", uid: int = 0) -> ProcessReading:
    folder = root / str(pid)
    folder.mkdir()
    (folder / "cgroup").write_text(cgroup)
    (folder / "comm").write_text(comm + "\n")
    (folder / "status").write_text(f"Name:\t{comm}\nUid:\t{uid}\t0\t0\t0\n")
    return ProcessReading(pid=pid, card_uuid="GPU-1", memory_used=5)


def test_a_process_is_named_and_attributed(tmp_path: Path) -> None:
    """I4: a process on a card carries its container, job, user and name."""
    found = process(tmp_path, 10, cgroup=f"0::/system.slice/docker-{C}.scope\n", uid=os.getuid())
    (done,) = ProcessTable(tmp_path).complete([found])
    assert (done.name, done.user, done.container_id) == ("python", pwd.getpwuid(os.getuid()).pw_name, C)
    assert (done.pid, done.card_uuid, done.memory_used) == (10, "GPU-1", 5)


def test_what_the_driver_knew_stays(tmp_path: Path) -> None:
    process(tmp_path, 10, cgroup="0::/system.slice/slurmstepd.scope/job_7/step_0")
    known = ProcessReading(pid=10, card_uuid="GPU-1", name="train", user="ada", slurm_job_id="6")
    (done,) = ProcessTable(tmp_path).complete([known])
    assert (done.name, done.user, done.slurm_job_id) == ("train", "ada", "6")


def test_a_process_that_ended_stays_as_it_was(tmp_path: Path) -> None:
    gone = ProcessReading(pid=99, card_uuid="GPU-1")
    assert ProcessTable(tmp_path).complete([gone]) == (gone,)


def test_a_user_whom_nobody_knows_is_a_number(tmp_path: Path) -> None:
    found = process(tmp_path, 10, uid=3_999_999_999)
    (done,) = ProcessTable(tmp_path).complete([found])
    assert done.user == "3999999999"


def test_a_directory_that_hangs_does_not_hold_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    answer = threading.Event()

    def slow(uid: int) -> object:
        answer.wait(10)
        return type("Entry", (), {"pw_name": "ada"})()

    monkeypatch.setattr("inventory.agent.processes.pwd.getpwuid", slow)
    monkeypatch.setattr("inventory.agent.processes.NAME_PATIENCE", 0.01)
    names = UserNames()
    assert names.name(1000) == "1000"
    assert names.name(1001) == "1001"  # one question at a time
    answer.set()
    assert names._asking is not None
    names._asking.join(5)
    assert names.name(1000) == "ada"
