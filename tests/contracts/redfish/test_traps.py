"""I3: the traps of real BMC data, one named case each (what vendors write, what must come out)."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.bmc.redfish.metrics import CardParts, card_values, overlay
from inventory.drivers.bmc.redfish.resources import count, excerpt, moment, number, path_of, pick, words
from inventory.drivers.bmc.redfish.sensors import consumed_power, is_margin, sensor_reading
from inventory.observations import SensorReading
from tests.contracts.redfish.conftest import Open, Serve
from tests.contracts.redfish.trees import V1, hgx, hpe, sensor, uuid_of

CHASSIS = f"{V1}/Chassis/Chassis_0"
PROCESSORS = f"{V1}/Systems/HGX_Baseboard_0/Processors"

NUMBERS: dict[str, tuple[object, float | None]] = {
    "plain": (52.5, 52.5),
    "a string": ("52.000000", 52.0),
    "a padded string": (" 1755 ", 1755.0),
    "exponent": ("1e3", 1000.0),
    "null": (None, None),
    "empty": ("", None),
    "N/A": ("N/A", None),
    "words": ("Out of range", None),
    "true is no 1": (True, None),
    "NaN": (math.nan, None),
    "nan as text": ("nan", None),
    "infinite": (math.inf, None),
    "32 bits of ones": (4294967295, None),
    "32 bits of ones as text": ("4294967295", None),
    "64 bits of ones": (18446744073709551615, None),
    "a bit error rate of zero": (1.5e-254, 0.0),
    "negative": (-4, -4.0),
    "an object": ({"Reading": 5}, None),
    "too big for a float": (10**400, None),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    written, expected = NUMBERS[name]
    assert number(written) == expected


def test_counts_are_whole_and_never_negative() -> None:
    assert [count(value) for value in (3, "3.000000", -1, None, 4294967295)] == [3, 3, None, None, None]


def test_an_excerpt_is_read_like_a_number() -> None:
    assert [excerpt(value) for value in ({"Reading": 5}, 5, {"Reading": None}, {}, None)] == [5, 5, None, None, None]


PATHS: dict[str, tuple[object, str]] = {
    "usual": ({"@odata.id": "/redfish/v1/Systems/1"}, "/redfish/v1/Systems/1"),
    "other case": ({"@odata.ID": "/redfish/v1/Systems/1"}, "/redfish/v1/Systems/1"),
    "with a host": ({"@odata.id": "https://10.0.0.1/redfish/v1/Systems/1"}, "/redfish/v1/Systems/1"),
    "trailing slash is kept for asking": ({"@odata.id": "/redfish/v1/Systems/1/"}, "/redfish/v1/Systems/1/"),
    "as text": ("/redfish/v1/Systems/1", "/redfish/v1/Systems/1"),
    "a query": ("/redfish/v1/Logs?$skip=50", "/redfish/v1/Logs?$skip=50"),
    "href of old iLO": ({"href": "/rest/v1/systems/1"}, "/rest/v1/systems/1"),
    "nothing": ({}, ""),
    "null": (None, ""),
}


@pytest.mark.parametrize("name", PATHS)
def test_links(name: str) -> None:
    reference, expected = PATHS[name]
    assert path_of(reference) == expected


def _sensor(**fields: Any) -> dict[str, Any]:
    base = {"@odata.id": f"{CHASSIS}/Sensors/T", "Id": "T", "Name": "T", "ReadingType": "Temperature"}
    return {**base, "ReadingUnits": "Cel", "Reading": 40, "Status": {"State": "Enabled", "Health": "OK"}, **fields}


def _levels(**levels: object) -> dict[str, Any]:
    return {"Thresholds": {name: {"Reading": value} for name, value in levels.items()}}


PLAIN = SensorReading(name="T", kind="temperature", unit="C", value=40, state="ok")
SENSORS: dict[str, tuple[dict[str, Any], SensorReading | None]] = {
    "plain": (_sensor(), PLAIN),
    "absent reads 0 and is dropped": (_sensor(Reading=0, Status={"State": "Absent"}), None),
    "disabled is dropped": (_sensor(Reading=0, Status={"State": "Disabled"}), None),
    "null reading is no zero": (
        _sensor(Reading=None),
        SensorReading(name="T", kind="temperature", unit="C", state="ok"),
    ),
    "no reading": (
        {key: value for key, value in _sensor().items() if key != "Reading"},
        SensorReading(name="T", kind="temperature", unit="C", state="ok"),
    ),
    "silent while the host is off": (
        _sensor(Reading=0, Status={"State": "UnavailableOffline"}),
        SensorReading(name="T", kind="temperature", unit="C", state="unavailableoffline"),
    ),
    "thresholds of -1, null and 0 are none": (
        _sensor(**_levels(UpperCaution=-1, UpperCritical=None, LowerCaution=0, LowerCritical=0)),
        PLAIN,
    ),
    "thresholds are read": (
        _sensor(**_levels(UpperCaution=87, UpperCritical="90", LowerCaution=5)),
        SensorReading(
            name="T",
            kind="temperature",
            unit="C",
            value=40,
            upper_caution=87,
            upper_critical=90,
            lower_caution=5,
            state="ok",
        ),
    ),
    "headroom is a margin": (
        _sensor(ReadingBasis="Headroom", **_levels(LowerCaution=-0.05, LowerCritical=-4)),
        SensorReading(name="T", kind="margin", unit="C", value=40, lower_caution=-0.05, lower_critical=-4, state="ok"),
    ),
    "a state without unit and type is no sensor": (_sensor(ReadingType=None, ReadingUnits=None), None),
    "health that is not OK": (
        _sensor(Status={"State": "Enabled", "Health": "Critical"}),
        SensorReading(name="T", kind="temperature", unit="C", value=40, state="critical"),
    ),
    "a unit without type": (
        _sensor(ReadingType=None, ReadingUnits="W"),
        SensorReading(name="T", kind="power", unit="W", value=40, state="ok"),
    ),
}


@pytest.mark.parametrize("name", SENSORS)
def test_sensors(name: str) -> None:
    resource, expected = SENSORS[name]
    assert sensor_reading(resource) == expected


MARGINS: dict[str, tuple[dict[str, Any], bool]] = {
    "GB300 TEMP_0 is a temperature": ({"Id": "HGX_GPU_0_TEMP_0", **_levels(UpperCaution=87)}, False),
    "GB300 TEMP_1 by its basis": ({"Id": "HGX_GPU_0_TEMP_1", "ReadingBasis": "Headroom"}, True),
    "H100 TEMP_1 without a basis": ({"Id": "HGX_GPU_SXM_1_TEMP_1", **_levels(LowerCaution=0, LowerCritical=-2)}, True),
    "TLIMIT of a DGX": ({"Id": "TLIMIT_GB_SXM2"}, True),
    "the word margin": ({"Name": "CPU Margin to Throttle"}, True),
    "negative lower levels alone": ({"Id": "X", **_levels(LowerCritical=-3, LowerFatal=-5)}, True),
    "an inlet that may freeze": ({"Id": "Inlet", **_levels(LowerCritical=-7, UpperCritical=47)}, False),
    "a zero basis decides": ({"Id": "TLIMIT_X", "ReadingBasis": "Zero"}, False),
    "GPU 1's temperature of another make": ({"Id": "GPU_TEMP_1"}, False),
}


@pytest.mark.parametrize("name", MARGINS)
def test_margins(name: str) -> None:
    resource, expected = MARGINS[name]
    assert is_margin(resource) is expected


async def test_gb300_temperature_is_temp_0_and_never_the_margin(serve: Serve, connect: Open) -> None:
    """EnvironmentMetrics copies TEMP_1 there; with TEMP_0 gone the temperature is unknown, not 55."""
    for levels in (0, 2):
        tree = hgx(cards=2, first=0, name="GPU_{}", levels=levels)
        gone = f"{V1}/Chassis/HGX_GPU_1/Sensors/HGX_GPU_1_TEMP_0"
        tree[gone]["Status"] = {"State": "Absent"}
        report = f"{V1}/TelemetryService/MetricReports/HGX_PlatformEnvironmentMetrics_0"
        tree[report]["MetricValues"] = [row for row in tree[report]["MetricValues"] if row["MetricProperty"] != gone]
        driver = connect(await serve(tree))
        for reading in (await driver.discover(deadline=20), await driver.poll(deadline=20)):
            assert [card.values.temperature for card in reading.cards if card.values] == [30, None]
            margins = [entry for entry in reading.sensors if entry.kind == "margin"]
            assert {entry.value for entry in margins} == {55}


async def test_ids_may_count_from_one_or_from_zero(serve: Serve, connect: Open) -> None:
    """Cards are enumerated; an id is never made up from an index."""
    for first, name in ((1, "GPU_SXM_{}"), (0, "GPU_{}")):
        server = await serve(hgx(cards=3, first=first, name=name))
        reading = await connect(server).discover(deadline=20)
        assert [card.slot for card in reading.cards] == [f"SXM{n}" for n in range(first, first + 3)]
        assert server.log.statuses[404] == 0


async def test_uuid_gets_the_prefix_that_the_driver_in_the_node_shows(serve: Serve, connect: Open) -> None:
    tree = hgx(cards=1)
    tree[f"{PROCESSORS}/GPU_SXM_1"]["UUID"] = uuid_of(1).upper()
    reading = await connect(await serve(tree)).discover(deadline=20)
    assert reading.cards[0].uuid == f"GPU-{uuid_of(1)}"


async def test_serials_lose_their_blanks_and_placeholders(serve: Serve, connect: Open) -> None:
    tree = hgx(cards=2)
    tree[f"{PROCESSORS}/GPU_SXM_1"]["SerialNumber"] = "  1652923003067  "
    tree[f"{PROCESSORS}/GPU_SXM_2"]["SerialNumber"] = "NA"
    reading = await connect(await serve(tree)).discover(deadline=20)
    assert [card.serial for card in reading.cards] == ["1652923003067", ""]


async def test_two_gpus_of_one_board_share_a_serial_and_a_label(serve: Serve, connect: Open) -> None:
    """GB300: both dies of a superchip carry its serial, and each module counts its GPUs from 0."""
    tree = hgx(cards=4, first=0, name="GPU_{}")
    for n in range(4):
        tree[f"{PROCESSORS}/GPU_{n}"]["SerialNumber"] = f"165312503{n // 2}"
        tree[f"{PROCESSORS}/GPU_{n}"]["Location"]["PartLocation"]["ServiceLabel"] = f"GPU_{n % 2}"
        if n > 1:
            tree[f"{PROCESSORS}/GPU_{n}"]["UUID"] = None
    reading = await connect(await serve(tree)).discover(deadline=20)
    assert [card.serial[-1] for card in reading.cards] == ["0", "0", "1", "1"]
    assert [card.slot for card in reading.cards] == ["GPU_0", "GPU_1", "GPU_2", "GPU_3"]


async def test_a_capacity_of_zero_is_unknown(serve: Serve, connect: Open) -> None:
    tree = hgx(cards=1)
    tree[f"{V1}/Systems/HGX_Baseboard_0/Memory/GPU_SXM_1_DRAM_0"]["CapacityMiB"] = 0
    card = (await connect(await serve(tree)).discover(deadline=20)).cards[0]
    assert card.memory_total is None
    assert card.values is not None
    assert card.values.memory_used is None


async def test_everything_as_text_reads_the_same(serve: Serve, connect: Open) -> None:
    def as_text(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: as_text(item) for key, item in value.items()}
        if isinstance(value, list):
            return [as_text(item) for item in value]
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    plain = hgx(cards=1)
    wordy = {path: as_text(resource) for path, resource in plain.items()}
    readings = [await connect(await serve(tree)).discover(deadline=20) for tree in (plain, wordy)]
    assert readings[0].cards == readings[1].cards
    assert readings[0].sensors == readings[1].sensors


async def test_other_spelling_of_odata_properties(serve: Serve, connect: Open) -> None:
    tree = json.loads(json.dumps(hgx(cards=1)).replace('"@odata.id"', '"@Odata.Id"').replace('"Members"', '"members"'))
    reading = await connect(await serve(tree)).discover(deadline=20)
    assert [card.serial for card in reading.cards] == ["165291"]


async def test_sensor_names_are_unique_in_a_reading(serve: Serve, connect: Open) -> None:
    tree = hgx(cards=1)
    for chassis in (CHASSIS, f"{V1}/Chassis/HGX_GPU_SXM_1"):
        sensor(tree, chassis, "Temp", "Temperature", "Cel", 30)
    reading = await connect(await serve(tree)).discover(deadline=20)
    names = [entry.name for entry in reading.sensors]
    assert len(names) == len(set(names))
    assert {"Temp", "Temp 2"} <= set(names)


@pytest.mark.parametrize(("names", "expected"), [(("44-GPU 1", "45-GPU 2"), [61, 62]), (("44-GPU 1",), [None, None])])
async def test_sensors_named_after_modules_belong_to_them(
    serve: Serve, connect: Open, names: tuple[str, ...], expected: list[float | None]
) -> None:
    """iLO ties a GPU's temperature to its module by name alone; believed only where all modules have one."""
    tree = hpe(levels=0)
    for n in (3, 4):
        label = {"PartLocation": {"ServiceLabel": f"SXM{n - 2}"}}
        tree[f"{V1}/Systems/1/Processors/{n}"]["Location"] = label
    status = {"State": "Enabled", "Health": "OK"}
    tree[f"{V1}/Chassis/1/Thermal"]["Temperatures"] += [
        {"MemberId": str(n), "Name": name, "ReadingCelsius": 61 + n, "Status": status} for n, name in enumerate(names)
    ]
    driver = connect(await serve(tree))
    for reading in (await driver.discover(deadline=20), await driver.poll(deadline=20)):
        assert [card.values.temperature for card in reading.cards if card.values] == expected


REPORT_ROWS: dict[str, tuple[dict[str, Any], object]] = {
    "older form without a fragment": ({"MetricProperty": "/s/T", "MetricValue": "26.75"}, "26.75"),
    "with a fragment": ({"MetricProperty": "/s/T#/Reading", "MetricValue": "26.75"}, "26.75"),
    "flagged stale": (
        {"MetricProperty": "/s/T", "MetricValue": "26.75", "Oem": {"Nvidia": {"MetricValueStale": True}}},
        None,
    ),
    "older than its report by minutes": (
        {"MetricProperty": "/s/T", "MetricValue": "26.75", "Timestamp": "2020-12-11T16:30:00+00:00"},
        None,
    ),
}


@pytest.mark.parametrize("name", REPORT_ROWS)
def test_metric_reports(name: str) -> None:
    row, expected = REPORT_ROWS[name]
    newest = {"MetricProperty": "/s/U", "MetricValue": "1", "Timestamp": "2020-12-11T16:40:00+00:00"}
    assert overlay([{"MetricValues": [newest, row]}]).get("/s/t", {}).get("Reading") == expected


def test_report_pointers_rebuild_the_resource() -> None:
    row = {"MetricProperty": "/p#/Oem/Nvidia/SMUtilizationPercent", "MetricValue": "nan"}
    other = {"MetricProperty": "/p#/OperatingSpeedMHz", "MetricValue": "2070"}
    built = overlay([{"MetricValues": [row, other]}])["/p"]
    values = card_values(CardParts(metrics=built), memory_total=None)
    assert (values.utilization, values.sm_clock) == (None, 2070)


def test_a_power_limit_is_the_set_point_and_not_the_present_power() -> None:
    limit = {"SetPoint": 700, "Reading": 71.6}
    assert card_values(CardParts(environment={"PowerLimitWatts": limit}), memory_total=None).power_limit == 700
    disabled = {"SetPoint": 300, "ControlMode": "Disabled"}
    assert card_values(CardParts(environment={"PowerLimitWatts": disabled}), memory_total=None).power_limit is None


def test_power_of_the_system_is_not_that_of_a_domain() -> None:
    entries = [
        {"MemberId": "1", "Name": "CPU", "PowerConsumedWatts": 134},
        {"MemberId": "0", "PowerConsumedWatts": 565},
    ]
    assert consumed_power({"PowerControl": entries}) == 565
    assert consumed_power({"PowerControl": [{"MemberId": "0", "Name": "Chassis Power Control"}]}) is None


def test_a_clock_never_set_gives_no_time() -> None:
    assert moment("1970-01-01T00:00:12+00:00") is None
    assert moment("not a time") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Reading", "Status", "State", "Thresholds", "UpperCaution", "Id", "Name", "Oem", "Members"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_shape_of_json_breaks_the_parsers(value: Any) -> None:
    """Whatever a BMC writes, parsing gives a value or nothing and never raises."""
    resource = value if isinstance(value, dict) else {"Reading": value, "ReadingType": value, "MetricValues": value}
    sensor_reading({"ReadingType": "Temperature", **resource})
    is_margin(resource)
    consumed_power({"PowerControl": value})
    overlay([{"MetricValues": [value, {"MetricProperty": value, "MetricValue": value}]}, resource])
    card_values(
        CardParts(processor=resource, environment=resource, metrics=resource, memory_metrics=[resource]),
        memory_total=1,
    )
    assert isinstance(words(value), str)
    assert isinstance(path_of(value), str)
    pick(value, "Id")
