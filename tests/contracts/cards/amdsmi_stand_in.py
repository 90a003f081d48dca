"""Plays the package `amdsmi` of ROCm 7: copied to a folder as `amdsmi.py`, its state in STATE beside it."""

import enum
import json
import time
from pathlib import Path

STATE = Path(__file__).with_name("state.json")
state = json.loads(STATE.read_text())
if state.get("broken"):
    print("Unable to find libamd_smi.so library")
    raise KeyError("libamd_smi.so")


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code):
        super().__init__(f"Error code:\n\t{err_code}")
        self.err_code = err_code


AmdSmiTemperatureType = enum.IntEnum("AmdSmiTemperatureType", ["EDGE", "HOTSPOT", "VRAM"])
AmdSmiTemperatureMetric = enum.IntEnum("AmdSmiTemperatureMetric", ["CURRENT"])
AmdSmiClkType = enum.IntEnum("AmdSmiClkType", ["GFX", "MEM"])
asked = []


def now(name, index=None):
    asked.append(name)
    current = json.loads(STATE.read_text())
    until = time.monotonic() + 30
    while [name, index] in current.get("hang", []) and time.monotonic() < until:
        time.sleep(0.01)
        current = json.loads(STATE.read_text())
    code = current.get("fail", {}).get(name)
    if code:
        raise AmdSmiLibraryException(code)
    return current


def amdsmi_init():
    now("init")


def amdsmi_get_processor_handles():
    return list(range(now("handles")["count"]))


def answer(name, make):
    def function(handle, *arguments):
        return make(handle, now(name, handle), *arguments)

    globals()[f"amdsmi_{name}"] = function


def temperature(handle, current, sensor, _metric):
    if sensor == AmdSmiTemperatureType.EDGE:
        raise AmdSmiLibraryException(2)
    return 71 if sensor == AmdSmiTemperatureType.HOTSPOT else 55


answer("get_gpu_asic_info", lambda h, s: {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002",
       "device_id": "0x74a1", "asic_serial": f"0x{h:016X}", "oam_id": h})  # fmt: skip
answer("get_gpu_board_info", lambda h, s: {"model_number": "102-G30211-0C", "product_serial": f"69240900540{h}"})
answer("get_pcie_info", lambda h, s: {
    "pcie_static": {"max_pcie_width": 16, "max_pcie_speed": 32000, "pcie_interface_version": 5},
    "pcie_metric": {"pcie_replay_count": 4}})  # fmt: skip
answer("get_gpu_vbios_info", lambda h, s: {"name": "MI300X", "version": "022.040"})
answer("get_gpu_driver_info", lambda h, s: {"driver_name": "amdgpu", "driver_version": "6.12.12"})
answer("get_gpu_device_uuid", lambda h, s: f"{h:02x}ff74a1-0000-1000-8000-000000000001")
answer("get_gpu_device_bdf", lambda h, s: f"0000:{0xC1 + h:02x}:00.0")
answer("get_gpu_kfd_info", lambda h, s: {"kfd_id": 1, "current_partition_id": 0})
answer("get_gpu_compute_partition", lambda h, s: "SPX")
answer("get_gpu_memory_partition", lambda h, s: "NPS1")
answer("get_gpu_activity", lambda h, s: {"gfx_activity": 93, "umc_activity": 41, "mm_activity": "N/A"})
answer("get_power_info", lambda h, s: {"socket_power": "N/A", "current_socket_power": 612, "power_limit": 750})
answer("get_power_cap_info", lambda h, s: {"power_cap": 750000000})
answer("get_energy_count", lambda h, s: {"energy_accumulator": 10**12, "counter_resolution": 15.3, "timestamp": 1})
answer("get_temp_metric", temperature)
answer("get_clock_info", lambda h, s, kind: {"clk": 2100 if kind == AmdSmiClkType.GFX else 1300})
answer("get_gpu_total_ecc_count", lambda h, s: {"correctable_count": 7, "uncorrectable_count": 1})
answer("get_gpu_vram_usage", lambda h, s: {"vram_total": 196592, "vram_used": 2048})
answer("get_gpu_process_list", lambda h, s: [
    {"name": "python3", "pid": 42, "mem": 1, "memory_usage": {"vram_mem": 1024}}])  # fmt: skip
