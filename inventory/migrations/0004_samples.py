"""Sample tables: raw samples in daily partitions, rollups of 5 minutes and an hour, and what drives them.

Columns stand from wide to narrow so that no row holds padding. Absent values take no room. A counter
is int8 because devices report sentinels up to 2^63 that must not stop a batch.
"""

from django.db import migrations

GAUGES = (
    "utilization sm_activity tensor_activity memory_activity memory_used temperature memory_temperature power "
    "power_limit sm_clock memory_clock pcie_tx pcie_rx nvlink_tx nvlink_rx"
).split()
COUNTERS = "energy ecc_corrected ecc_uncorrected pcie_replays nvlink_errors remapped_rows".split()

SAMPLE = """
CREATE TABLE inventory_sample (
    ts timestamptz NOT NULL,
    energy float8,
    memory_used int8, throttle_reasons int8, ecc_corrected int8, ecc_uncorrected int8, pcie_replays int8,
    nvlink_errors int8, remapped_rows int8, xid int8,
    series int4 NOT NULL,
    utilization real, sm_activity real, tensor_activity real, memory_activity real, temperature real,
    memory_temperature real, power real, power_limit real, sm_clock real, memory_clock real, pcie_tx real,
    pcie_rx real, nvlink_tx real, nvlink_rx real,
    source int2 NOT NULL,
    "interval" int2 NOT NULL,
    CONSTRAINT inventory_sample_once UNIQUE (series, source, ts)
) PARTITION BY RANGE (ts);
CREATE INDEX inventory_sample_ts ON inventory_sample USING brin (ts) WITH (pages_per_range = 32, autosummarize = on);
"""

# A table is made beside its parent and attached, because that lets samples flow meanwhile;
# CREATE TABLE ... PARTITION OF would lock them out.
FUNCTIONS = """
CREATE FUNCTION inventory_add_partition(parent text, name text, low timestamptz, high timestamptz) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass(name) IS NOT NULL THEN
        RETURN false;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('inventory_add_partition'));
    IF to_regclass(name) IS NOT NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, parent);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, low, high);
    RETURN true;
END $$;

CREATE FUNCTION inventory_add_sample_day(day date) RETURNS boolean
LANGUAGE sql AS $$
    SELECT inventory_add_partition(
        'inventory_sample', 'inventory_sample_' || to_char(day, 'YYYYMMDD'),
        day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC')
$$;

CREATE FUNCTION inventory_add_rollup_month(day date) RETURNS boolean
LANGUAGE sql AS $$
    SELECT inventory_add_partition(
        'inventory_rollup_5m', 'inventory_rollup_5m_' || to_char(day, 'YYYYMM'),
        date_trunc('month', day::timestamp) AT TIME ZONE 'UTC',
        (date_trunc('month', day::timestamp) + interval '1 month') AT TIME ZONE 'UTC')
$$;

CREATE FUNCTION inventory_add_rollup_year(day date) RETURNS boolean
LANGUAGE sql AS $$
    SELECT inventory_add_partition(
        'inventory_rollup_1h', 'inventory_rollup_1h_' || to_char(day, 'YYYY'),
        date_trunc('year', day::timestamp) AT TIME ZONE 'UTC',
        (date_trunc('year', day::timestamp) + interval '1 year') AT TIME ZONE 'UTC')
$$;

-- The first statement of every transaction that stores samples. It answers up to when (epoch seconds)
-- buckets are claimed for rolling up: an older sample is late and marks its hour. The shared lock makes
-- the claim wait for writers that have not seen it, so that no sample slips between.
CREATE FUNCTION inventory_begin_write() RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtext('inventory_rollup_claim'));
    RETURN (SELECT extract(epoch FROM claimed)::bigint FROM inventory_rollup_state);
END $$;

CREATE FUNCTION inventory_claim_rollup(target timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('inventory_rollup_claim'));
    UPDATE inventory_rollup_state SET claimed = target WHERE claimed < target;
END $$;
"""

DROP_FUNCTIONS = """
DROP FUNCTION inventory_claim_rollup(timestamptz);
DROP FUNCTION inventory_begin_write();
DROP FUNCTION inventory_add_rollup_year(date);
DROP FUNCTION inventory_add_rollup_month(date);
DROP FUNCTION inventory_add_sample_day(date);
DROP FUNCTION inventory_add_partition(text, text, timestamptz, timestamptz);
"""


def rollup(name: str) -> str:
    """Wide to narrow again: counters, key, gauges, seconds."""
    counters = [
        f"{field}_{part} {'float8' if field == 'energy' else 'int8'}"
        for field in COUNTERS
        for part in ("first", "last", "growth")
    ]
    gauges = [f"{field}_{part} real" for field in GAUGES for part in ("min", "mean", "max")]
    return f"""
    CREATE TABLE {name} (
        bucket timestamptz NOT NULL,
        {", ".join(counters)},
        throttle_reasons int8, xid int8,
        series int4 NOT NULL,
        samples int4 NOT NULL,
        threshold real NOT NULL,
        {", ".join(gauges)},
        busy_s int2 NOT NULL, idle_s int2 NOT NULL, unknown_s int2 NOT NULL, held_s int2 NOT NULL,
        CONSTRAINT {name}_once PRIMARY KEY (series, bucket)
    ) PARTITION BY RANGE (bucket);
    CREATE INDEX {name}_bucket ON {name} USING brin (bucket) WITH (pages_per_range = 32, autosummarize = on);
    """


STATE = """
CREATE TABLE inventory_rollup_state (
    id int2 PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    claimed timestamptz NOT NULL,
    done timestamptz NOT NULL
);
INSERT INTO inventory_rollup_state (claimed, done)
SELECT now, now FROM date_bin('5 minutes', now(), 'epoch') AS now;
CREATE TABLE inventory_late (hour timestamptz NOT NULL, series int4 NOT NULL);
"""

PARTITIONS = """
SELECT inventory_add_sample_day((now() AT TIME ZONE 'UTC')::date + day) FROM generate_series(-14, 3) AS day;
SELECT inventory_add_rollup_month((now() AT TIME ZONE 'UTC')::date + day) FROM generate_series(-31, 31, 31) AS day;
SELECT inventory_add_rollup_year((now() AT TIME ZONE 'UTC')::date + day) FROM generate_series(-31, 31, 31) AS day;
"""


class Migration(migrations.Migration):
    dependencies = [("inventory", "0003_polling_state")]
    operations = [
        migrations.RunSQL(SAMPLE, "DROP TABLE inventory_sample"),
        migrations.RunSQL(rollup("inventory_rollup_5m"), "DROP TABLE inventory_rollup_5m"),
        migrations.RunSQL(rollup("inventory_rollup_1h"), "DROP TABLE inventory_rollup_1h"),
        migrations.RunSQL(STATE, "DROP TABLE inventory_late; DROP TABLE inventory_rollup_state"),
        migrations.RunSQL(FUNCTIONS, DROP_FUNCTIONS),
        migrations.RunSQL(PARTITIONS, migrations.RunSQL.noop),
    ]
