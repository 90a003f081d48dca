"""Makes the browser tests' database in a process of its own and prints what it holds as one line of JSON."""

import json
import secrets
from pathlib import Path

import django


def main() -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from inventory.models import Agent
    from inventory.services.agents import digest
    from tests.pools import seed as pool_seed
    from tests.sensaka.pages import seed, work_seed
    from tests.sensaka.promises import seed as request_seed

    made = seed.build()
    promised = pool_seed.build(made)
    work = work_seed.build(made, runs=60)
    asked = request_seed.build(made, promised)
    token = f"ska_{secrets.token_urlsafe(32)}"
    agent = made.agents["a01-gpu02"]
    Agent.objects.filter(pk=agent.pk).update(token_digest=digest(token))
    node = made.nodes["a01-gpu02"]
    own = [card for card in made.cards if card.node_id == node.pk]
    print(
        json.dumps(
            {
                "card": str(made.cards[0].pk),
                "divided": str(made.cards[-1].pk),
                "node": str(made.nodes["a01-gpu01"].pk),
                "site": str(made.sites["Central"].pk),
                "fed_node": str(node.pk),
                "fed_cards": [str(card.pk) for card in own],
                "fed_uuids": [card.uuid for card in own],
                "token": token,
                "cluster": str(work.clusters["central"].pk),
                "lost_cluster": str(work.clusters["regional"].pk),
                "bare_cluster": str(work.clusters["edge"].pk),
                "job": str(work.jobs["90214"].pk),
                "job_waiting": str(work.jobs["90240"].pk),
                "job_unknown": str(work.jobs["90231"].pk),
                "job_lost": str(work.jobs["90111"].pk),
                "job_steps": str(work.jobs["90120"].pk),
                "job_steered": str(work.jobs["90210"].pk),
                "spare_node": str(made.nodes["e01-gpu02"].pk),
                "drained_node": str(work_seed.node_called(work, "ours").pk),
                "free_node": str(made.nodes["r01-gpu02"].pk),
                "bmc": str(made.bmcs["r01-gpu01"].pk),
                **promised.ids(),
                **asked.ids(),
                "offered_spec": str(promised.specs["1 x H100"].pk),
            }
        )
    )


if __name__ == "__main__":
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main()
