"""The busy threshold of every series, in SQL (see inventory/rules/activity.py: threshold_for)."""

from inventory.rules.activity import DEFAULT_THRESHOLD

THRESHOLDS = f"""
    SELECT unit.series, coalesce(
        (SELECT chosen.activity FROM inventory_busythreshold chosen
         WHERE (chosen.model_id = unit.model_id OR chosen.model_id IS NULL)
           AND (chosen.cluster_id = unit.cluster_id OR chosen.cluster_id IS NULL)
         ORDER BY chosen.model_id IS NULL, chosen.cluster_id IS NULL LIMIT 1), {DEFAULT_THRESHOLD})::real AS threshold
    FROM (
        SELECT card.series, card.model_id, node.cluster_id
        FROM inventory_card card LEFT JOIN inventory_node node ON node.id = card.node_id
        UNION ALL
        SELECT slice.series, card.model_id, node.cluster_id
        FROM inventory_slice slice JOIN inventory_card card ON card.id = slice.card_id
        LEFT JOIN inventory_node node ON node.id = card.node_id
    ) AS unit
"""  # noqa: S608 - a constant of ours
"""Every series with its busy threshold, the most specific row first."""
