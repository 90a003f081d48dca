"""Power supplies, fans and air of a chassis, in the old (Thermal, Power) and the new (…Subsystem, Sensors) form."""

from collections.abc import Sequence

from sensaka.fleet.trees.base import OK, NodeTree, Resource, link, resource

_FANS = 8
_SUPPLIES = 6
# An idle fan turns at a third; the cards' heat drives it up to full speed at about 9 kW of a node.
_FAN_FLOOR, _FAN_SPAN = 33.0, 67.0
_FULL_NODE_POWER = 9000.0  # W
FAN_TOP = 16_500  # rpm


def fan_percent(powered: bool, watts: float) -> float:
    """Speed of the chassis fans in percent by the node's power in W; 0 when the host is off."""
    return round(_FAN_FLOOR + _FAN_SPAN * min(1.0, watts / _FULL_NODE_POWER), 1) if powered else 0.0


def _fan_percent(tree: NodeTree) -> float:
    return fan_percent(tree.powered, tree.world.node_power(tree.node))


def add_old(tree: NodeTree, *, percent_fans: bool, more_temperatures: "Sequence[GetTemperature]" = ()) -> None:
    """`Thermal` and `Power` as they were before 2020.4. HPE gives fans in percent."""
    tree.add(f"{tree.chassis}/Thermal", lambda: _thermal(tree, percent_fans, more_temperatures))
    tree.add(f"{tree.chassis}/Power", lambda: _power(tree))


class GetTemperature:
    """A further temperature of the old Thermal resource: a card's, by slot."""

    def __init__(self, name: str, slot: int, field: str = "temperature") -> None:
        self.name, self.slot, self.field = name, slot, field

    def entry(self, tree: NodeTree, number: int) -> Resource:
        """One element of `Temperatures`; an empty slot is there and Absent, with a reading of zero."""
        card = tree.world.card_at(tree.node, self.slot)
        values = None if card is None else tree.values(card)
        reading = None if values is None else getattr(values, self.field)
        return {
            "@odata.id": f"{tree.chassis}/Thermal#/Temperatures/{number}",
            "MemberId": str(number),
            "Name": self.name,
            "PhysicalContext": "GPU",
            "ReadingCelsius": 0 if card is None else reading,
            "Status": {"State": "Absent"} if card is None else OK,
            "UpperThresholdCritical": 0 if card is None else 95,
        }


def _thermal(tree: NodeTree, percent_fans: bool, more: "Sequence[GetTemperature]") -> Resource:
    path = f"{tree.chassis}/Thermal"
    speed = _fan_percent(tree)
    temperatures: list[Resource] = [
        {
            "@odata.id": f"{path}#/Temperatures/0", "MemberId": "0", "Name": "Inlet Ambient",
            "PhysicalContext": "Intake", "ReadingCelsius": tree.inlet, "Status": OK, "UpperThresholdCritical": 42,
        },
        {
            "@odata.id": f"{path}#/Temperatures/1", "MemberId": "1", "Name": "CPU 1", "PhysicalContext": "CPU",
            "ReadingCelsius": 48 if tree.powered else None, "Status": OK, "UpperThresholdCritical": 95,
        },
    ]  # fmt: skip
    temperatures += [item.entry(tree, number) for number, item in enumerate(more, start=2)]
    fans = [
        {
            "@odata.id": f"{path}#/Fans/{number}", "MemberId": str(number), "Name": f"Fan {number + 1}",
            "Reading": round(speed) if percent_fans else round(speed / 100 * FAN_TOP),
            "ReadingUnits": "Percent" if percent_fans else "RPM", "Status": OK,
        }
        for number in range(_FANS)
    ]  # fmt: skip
    return resource(path, "Thermal.v1_7_1", "Thermal", Temperatures=temperatures, Fans=fans)


def _power(tree: NodeTree) -> Resource:
    path = f"{tree.chassis}/Power"
    watts = round(tree.world.node_power(tree.node))
    supplies = [
        {
            "@odata.id": f"{path}#/PowerSupplies/{number}", "MemberId": str(number), "Name": f"PSU {number + 1}",
            "LineInputVoltage": 230, "LastPowerOutputWatts": round(watts / _SUPPLIES), "PowerCapacityWatts": 3000,
            "Status": OK,
        }
        for number in range(_SUPPLIES)
    ]  # fmt: skip
    control = {
        "@odata.id": f"{path}#/PowerControl/0", "MemberId": "0", "Name": "System Power Control",
        "PowerConsumedWatts": watts, "PowerCapacityWatts": 18000, "Status": OK,
    }  # fmt: skip
    return resource(path, "Power.v1_7_1", "Power", PowerControl=[control], PowerSupplies=supplies)


def sensor(
    path: str,
    name: str,
    *,
    kind: str,
    units: str,
    reading: float | None,
    status: Resource = OK,
    **more: object,
) -> Resource:
    """A Sensor resource; `kind` is its ReadingType."""
    return resource(
        path, "Sensor.v1_7_0", name, ReadingType=kind, ReadingUnits=units, Reading=reading, Status=status, **more
    )


def add_new(tree: NodeTree) -> None:
    """`EnvironmentMetrics`, `PowerSubsystem`, `ThermalSubsystem` and the chassis' sensors."""
    base = tree.chassis
    tree.add(
        f"{base}/EnvironmentMetrics",
        lambda: resource(
            f"{base}/EnvironmentMetrics", "EnvironmentMetrics.v1_3_0", "Environment Metrics",
            PowerWatts={"Reading": round(tree.world.node_power(tree.node))},
            TemperatureCelsius={"DataSourceUri": f"{base}/Sensors/Inlet_Temp", "Reading": tree.inlet},
        ),
    )  # fmt: skip
    tree.add(
        f"{base}/Sensors/Inlet_Temp",
        lambda: sensor(
            f"{base}/Sensors/Inlet_Temp", "Inlet Temp", kind="Temperature", units="Cel", reading=tree.inlet,
            PhysicalContext="Intake", Thresholds={"UpperCaution": {"Reading": 38}, "UpperCritical": {"Reading": 42}},
        ),
    )  # fmt: skip
    tree.add(
        f"{base}/Sensors/Total_Power",
        lambda: sensor(
            f"{base}/Sensors/Total_Power", "Total Power", kind="Power", units="W",
            reading=round(tree.world.node_power(tree.node)), PhysicalContext="Chassis",
        ),
    )  # fmt: skip
    tree.add(
        f"{base}/ThermalSubsystem",
        lambda: resource(
            f"{base}/ThermalSubsystem", "ThermalSubsystem.v1_3_0", "Thermal Subsystem", Status=OK,
            Fans=link(f"{base}/ThermalSubsystem/Fans"),
        ),
    )  # fmt: skip
    fans = [f"{base}/ThermalSubsystem/Fans/Fan{number + 1}" for number in range(_FANS)]
    tree.add_collection(f"{base}/ThermalSubsystem/Fans", "Fan", lambda: fans)
    for path in fans:
        tree.add(path, lambda path=path: _fan(tree, path))  # type: ignore[misc]
    tree.add(
        f"{base}/PowerSubsystem",
        lambda: resource(f"{base}/PowerSubsystem", "PowerSubsystem.v1_1_0", "Power Subsystem", Status=OK),
    )


def new_sensor_paths(tree: NodeTree) -> list[str]:
    """The chassis' own sensors, for its collection."""
    return [f"{tree.chassis}/Sensors/Inlet_Temp", f"{tree.chassis}/Sensors/Total_Power"]


def _fan(tree: NodeTree, path: str) -> Resource:
    speed = _fan_percent(tree)
    return resource(
        path, "Fan.v1_5_0", path.rsplit("/", 1)[-1], Status=OK,
        SpeedPercent={"Reading": speed, "SpeedRPM": round(speed / 100 * FAN_TOP)},
    )  # fmt: skip
