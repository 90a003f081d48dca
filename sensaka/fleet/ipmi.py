"""Simulated IPMI BMCs: one `ipmi_sim` process (Debian package openipmi) a BMC, driven through its console.

Each listens on its own loopback address. Values are set through standard input, so they are seen by
the very next read. The kernel ends the processes with their parent, and so does the end of their
standard input: no orphan stays.
"""

import hashlib
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sensaka.embedded import die_with_parent, end_process
from sensaka.fleet.ipmi_image import FAILED, PRESENT, Sensor, fru, record, sensors

LOWEST_PORT = 1024
SIMULATED = "simulated"  # asset tag, by which a reader knows that this is no real machine
_START_DEADLINE = 30.0  # s, for all of them together
_WORD = re.compile(r"[\w./-]+", re.ASCII)  # ipmi_sim splits its chassis command at blanks
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
# Get Channel Authentication Capabilities without a session: any BMC answers it (specification 22.13).
_HELLO = bytes.fromhex("0600ff07 00 00000000 00000000 09 20 18 c8 81 00 38 8e 04 b5")
_BMC = "0x20"
_SCRIPT = """#!/bin/sh
# Chassis control for ipmi_sim: FOLDER ADDRESS get|set|check WHAT [VALUE] ...
folder=$1; shift 2; verb=$1; shift
case $verb in
get) for what; do
       case $what in
       power) read -r state < "$folder/power"; echo "power:$state" ;;
       *) echo "$what:0" ;;
       esac
     done ;;
set) while [ $# -gt 1 ]; do
       case $1 in
       power) echo "$2" > "$folder/power.new"; mv "$folder/power.new" "$folder/power" ;;
       shutdown) echo 0 > "$folder/power.new"; mv "$folder/power.new" "$folder/power" ;;
       reset) echo "$2" >> "$folder/resets" ;;
       esac
       shift 2
     done ;;
check) case $1 in power|reset|shutdown|boot|identify) exit 0 ;; *) exit 1 ;; esac ;;
esac
"""


class SimulatorError(RuntimeError):
    """A simulated BMC did not start, or is asked for something that it has not; the message says which."""


def available() -> str | None:
    """None when ipmi_sim can be started, else why not, with the remedy."""
    if shutil.which("ipmi_sim") is None:
        return "ipmi_sim is missing: install the Debian package openipmi"
    return None


@dataclass(frozen=True, slots=True)
class SimulatedBmc:
    """What one BMC is. `name` names it towards the simulator; letters, digits and dashes."""

    name: str
    address: str
    serial: str
    system_uuid: str
    product: str = "GPU server 8x"
    manufacturer: str = "Supermicro"
    manufacturer_id: int = 10876
    gpus: int = 8
    fans: int = 8
    supplies: int = 6


@dataclass(slots=True)
class _Running:
    bmc: SimulatedBmc
    folder: Path
    sensors: dict[str, Sensor]
    values: dict[str, float]
    failed: dict[str, bool]
    process: subprocess.Popen[bytes] | None = None
    frozen: bool = False
    missed: set[str] = field(default_factory=set)


class IpmiSimulator:
    """A fleet of simulated BMCs.

    Start it from a thread that lives as long as the BMCs shall: the kernel takes the end of the
    starting thread for the parent's. `folder` is replaced by a short one in the system's temporary
    folder where its name has blanks.
    """

    def __init__(self, folder: Path, bmcs: Iterable[SimulatedBmc], *, port: int, username: str, password: str) -> None:
        if port < LOWEST_PORT:
            raise ValueError(f"the port must be {LOWEST_PORT} or higher, not {port}")
        for text in (username, password):
            if not re.fullmatch(r"[!#-~]{1,16}", text) or "\\" in text:
                raise ValueError("user name and password must be 1-16 printable characters without blanks and quotes")
        self.port = port
        self._username, self._password = username, password
        self._asked_folder = folder
        self._folder: Path | None = None
        self._bmcs = tuple(bmcs)
        self._running: dict[str, _Running] = {}
        for bmc in self._bmcs:
            if not _NAME.fullmatch(bmc.name):
                raise ValueError(f"{bmc.name!r} can't be the name of a simulated BMC")

    def start(self) -> None:
        """Start every BMC and wait until each answers. Raises SimulatorError; then none is left running."""
        reason = available()
        if reason is not None:
            raise SimulatorError(reason)
        self._folder = _run_folder(self._asked_folder)
        script = self._folder / "chassis"
        script.write_text(_SCRIPT)
        script.chmod(stat.S_IRWXU)
        try:
            for bmc in self._bmcs:
                running = self._prepare(bmc, self._folder / bmc.name)
                self._running[bmc.name] = running
                self._launch(running)
            self._wait_for(self._running.values())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every BMC and remove what was written. Repeatable."""
        for running in self._running.values():
            _close(running)
        self._running.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def start_bmc(self, name: str) -> None:
        """Start one that was stopped, with the values it had; its event log is empty. Raises SimulatorError."""
        running = self._of(name)
        if running.process is None or running.process.poll() is not None:
            self._launch(running)
            self._wait_for((running,))

    def stop_bmc(self, name: str) -> None:
        """End one: its port is closed then, as on a machine without power."""
        _close(self._of(name))

    def freeze_bmc(self, name: str) -> None:
        """Make one silent without closing its port, as a hung BMC is."""
        running = self._of(name)
        if running.process is not None and not running.frozen:
            running.process.send_signal(signal.SIGSTOP)
            running.frozen = True

    def thaw_bmc(self, name: str) -> None:
        """Let a frozen one go on; values set meanwhile take effect."""
        running = self._of(name)
        if running.process is not None and running.frozen:
            running.process.send_signal(signal.SIGCONT)
            running.frozen = False
            for sensor in sorted(running.missed):
                self._tell(running, _setting(running, sensor, events=True))
            running.missed.clear()

    def running(self, name: str) -> bool:
        """Whether the BMC's process lives."""
        process = self._of(name).process
        return process is not None and process.poll() is None

    def set_value(self, name: str, sensor: str, value: float) -> None:
        """Set a numeric sensor in its unit (C, W, RPM); crossing a threshold writes an event."""
        running = self._of(name)
        if sensor not in running.values:
            raise SimulatorError(f"{name} has no numeric sensor {sensor!r}")
        before, running.values[sensor] = running.values[sensor], value
        if running.sensors[sensor].raw(value) != running.sensors[sensor].raw(before):
            try:
                self._apply(running, sensor)
            except SimulatorError:
                running.values[sensor] = before  # not told, so the next call tries again
                raise

    def set_supply(self, name: str, number: int, *, failed: bool) -> None:
        """Let a power supply fail or recover, with its event."""
        running, sensor = self._of(name), f"PSU{number} Status"
        if sensor not in running.failed:
            raise SimulatorError(f"{name} has no power supply {number}")
        if running.failed[sensor] != failed:
            running.failed[sensor] = failed
            self._apply(running, sensor)

    def powered(self, name: str) -> bool:
        """Chassis power, which the product may have switched through the BMC."""
        return (self._of(name).folder / "power").read_text().strip() != "0"

    def set_power(self, name: str, powered: bool) -> None:
        """Switch chassis power as somebody at the machine would."""
        _write(self._of(name).folder / "power", "1\n" if powered else "0\n")

    def resets(self, name: str) -> int:
        """How often the product reset the machine."""
        path = self._of(name).folder / "resets"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def add_event(self, name: str, event: Sequence[int], *, kind: int = 0x02) -> None:
        """Add a log record: 13 bytes after the record type (time, generator, version, sensor ...)."""
        if len(event) != 13 or not all(0 <= byte <= 255 for byte in event):
            raise ValueError("an event record has 13 bytes after its type")
        self._tell(self._of(name), f"sel_add {_BMC} 0x{kind:02x} {_bytes(event)}")

    def console(self, name: str, command: str) -> None:
        """Give one command of ipmi_sim_cmd(5), for what the methods above don't cover."""
        self._tell(self._of(name), command)

    # ----------------------------------------------------------------------------------------------

    def _of(self, name: str) -> _Running:
        try:
            return self._running[name]
        except KeyError:
            raise SimulatorError(f"no simulated BMC {name!r} was started") from None

    def _prepare(self, bmc: SimulatedBmc, folder: Path) -> _Running:
        folder.mkdir(mode=0o700)
        by_name = {sensor.name: sensor for sensor in sensors(gpus=bmc.gpus, fans=bmc.fans, supplies=bmc.supplies)}
        running = _Running(
            bmc, folder, by_name,
            values={name: sensor.start for name, sensor in by_name.items() if sensor.numeric},
            failed={name: False for name, sensor in by_name.items() if not sensor.numeric},
        )  # fmt: skip
        _write(folder / "power", "1\n")
        image = fru(manufacturer=bmc.manufacturer, product=bmc.product, serial=bmc.serial, asset=SIMULATED)
        (folder / "fru").write_bytes(image)
        _write(folder / "lan.conf", self._configuration(running))
        return running

    def _configuration(self, running: _Running) -> str:
        bmc, levels = running.bmc, ("callback", "user", "operator", "admin")
        allowed = "\n".join(f"    allowed_auths_{level} md5" for level in levels)
        guid = _wire_guid(bmc.system_uuid)
        return (
            f'name "{bmc.name}"\nset_working_mc {_BMC}\n  startlan 1\n    addr {bmc.address} {self.port}\n'
            f"    priv_limit admin\n{allowed}\n    guid {guid}\n  endlan\n"
            f'  chassis_control "{running.folder.parent}/chassis {running.folder} {_BMC}"\n'
            f'  user 2 true "{self._username}" "{self._password}" admin 10 md5\n'
        )

    def _commands(self, running: _Running) -> str:
        bmc = running.bmc
        lines = [
            f"mc_setbmc {_BMC}",
            f"mc_add {_BMC} 0x20 no-device-sdrs 0x01 1 0x05 0x9f 0x{bmc.manufacturer_id:x} 0x0b37",
            f"sel_enable {_BMC} 512 0x0a",
        ]
        for sensor in running.sensors.values():
            lines.append(f"main_sdr_add {_BMC} {_bytes(record(sensor))}")
            lines += _sensor_commands(sensor)
            lines.append(_setting(running, sensor.name, events=False))
        size = (running.folder / "fru").stat().st_size
        lines.append(f'mc_add_fru_data {_BMC} 0 {size} file 0 "{running.folder}/fru"')
        lines.append(f"mc_enable {_BMC}")
        return "\n".join(lines) + "\n"

    def _launch(self, running: _Running) -> None:
        state = running.folder / "state"
        shutil.rmtree(state, ignore_errors=True)  # it would bring the sensor records back a second time
        state.mkdir()
        _write(running.folder / "commands", self._commands(running))
        with (running.folder / "log").open("wb") as log:
            running.process = subprocess.Popen(
                ["ipmi_sim", "-c", str(running.folder / "lan.conf"), "-f", str(running.folder / "commands"),
                 "-s", str(state)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True, bufsize=0,
                cwd="/", preexec_fn=die_with_parent(signal.SIGKILL),
            )  # fmt: skip
        running.frozen = False
        running.missed.clear()
        assert running.process.stdin is not None
        os.set_blocking(running.process.stdin.fileno(), False)

    def _wait_for(self, fleet: Iterable[_Running]) -> None:
        deadline = time.monotonic() + _START_DEADLINE
        for running in fleet:
            while not _answers(running.bmc.address, self.port):
                process = running.process
                if process is None or process.poll() is not None or time.monotonic() > deadline:
                    words = (running.folder / "log").read_text(errors="replace").strip()[-500:]
                    raise SimulatorError(f"the simulated BMC {running.bmc.name} did not start: {words or 'no answer'}")

    def _apply(self, running: _Running, sensor: str) -> None:
        if running.frozen:
            running.missed.add(sensor)
        elif running.process is not None and running.process.poll() is None:
            self._tell(running, _setting(running, sensor, events=True))

    def _tell(self, running: _Running, command: str) -> None:
        process = running.process
        if process is None or process.stdin is None or process.poll() is not None:
            raise SimulatorError(f"the simulated BMC {running.bmc.name} is not running")
        try:
            os.write(process.stdin.fileno(), command.encode() + b"\n")
        except (BlockingIOError, BrokenPipeError) as error:
            raise SimulatorError(f"the simulated BMC {running.bmc.name} takes no commands: {error}") from error


def _run_folder(asked: Path) -> Path:
    """The folder itself, or one of fixed name in the temporary folder, so that a killed run leaves one at most."""
    folder = asked.resolve()
    if not _WORD.fullmatch(str(folder)):
        name = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
        folder = Path(tempfile.gettempdir()) / f"sensaka-ipmi-{os.geteuid()}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise SimulatorError(f"{folder} can't be replaced: remove it") from None
    return folder


def _write(path: Path, text: str) -> None:
    """Replace a file in one step: the chassis script may be reading it."""
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.rename(path)


def _bytes(data: Iterable[int]) -> str:
    return " ".join(f"0x{byte:02x}" for byte in data)


def _wire_guid(uuid: str) -> str:
    """A UUID in the byte order of SMBIOS, as BMCs send it."""
    text = uuid.replace("-", "").lower()
    data = bytes.fromhex(text)
    return (data[3::-1] + data[5:3:-1] + data[7:5:-1] + data[8:]).hex()


def _sensor_commands(sensor: Sensor) -> list[str]:
    place = f"{_BMC} 0 0x{sensor.number:02x}"
    mask = f"{sensor.event_mask:015b}"
    lines = [f"sensor_add {place} 0x{sensor.type:02x} 0x{sensor.event_type:02x}"]
    if sensor.numeric:
        values = _bytes(reversed(sensor.raw_limits))
        lines.append(f"sensor_set_threshold {place} settable {sensor.limit_mask:06b} {values}")
    lines.append(f"sensor_set_event_support {place} enable scanning per-state {mask} {mask} {mask} {mask}")
    return lines


def _setting(running: _Running, name: str, *, events: bool) -> str:
    sensor = running.sensors[name]
    place = f"{_BMC} 0 0x{sensor.number:02x}"
    if sensor.numeric:
        return f"sensor_set_value {place} {sensor.raw(running.values[name])} {int(events)}"
    failed = f"sensor_set_bit {place} {FAILED} {int(running.failed[name])} {int(events)}"
    return failed if events else f"sensor_set_bit {place} {PRESENT} 1 0\n{failed}"


def _answers(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect((address, port))
            probe.send(_HELLO)
            return bool(probe.recv(256))
        except TimeoutError:
            return False
        except OSError:
            time.sleep(0.02)  # the port is not open yet
            return False


def _close(running: _Running) -> None:
    process = running.process
    running.process = None
    if process is None:
        return
    if running.frozen:
        process.send_signal(signal.SIGCONT)
        running.frozen = False
    if process.stdin is not None:
        process.stdin.close()
    end_process(process, first=signal.SIGTERM, then=signal.SIGKILL, patience=3)
