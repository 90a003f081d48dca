"""Documents made from the code: docs/states.md and docs/openapi.yaml.

python -m sensaka.documents           write them
python -m sensaka.documents --check   fail when a committed one is out of date, or a migration is missing
"""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import django
from django.core.management import call_command

ROOT = Path(__file__).resolve().parent.parent


def states() -> str:
    """Every life cycle as a table and a drawing."""
    from inventory.rules.lifecycle import CARD, NODE
    from pools.rules.lifecycle import REQUEST

    parts = ["# States", "", "Made from the transition tables by `make docs`; don't edit.", ""]
    for machine in (NODE, CARD, REQUEST):
        parts += [f"## {machine.name.capitalize()}", "", "| state | meaning |", "|---|---|"]
        parts += [f"| `{state}` | {meaning} |" for state, meaning in machine.states.items()]
        parts += ["", "```mermaid", machine.mermaid(), "```", ""]
    return "\n".join(parts)


def openapi() -> str:
    """The OpenAPI document; its warnings are errors."""
    text = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=text)
    return text.getvalue()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the documents."""
    parser = argparse.ArgumentParser(prog="sensaka.documents")
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args(arguments).check
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev")
    django.setup()
    if check:
        with warnings.catch_warnings():
            # the check compares files; a database that is down is no reason to warn
            warnings.simplefilter("ignore", RuntimeWarning)
            call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    outdated = []
    for path, make in ((ROOT / "docs" / "states.md", states), (ROOT / "docs" / "openapi.yaml", openapi)):
        text = make()
        if check and (not path.exists() or path.read_text() != text):
            outdated.append(str(path.relative_to(ROOT)))
        elif not check:
            path.write_text(text)
    if outdated:
        sys.stderr.write(f"out of date: {', '.join(outdated)}; run `make docs` and commit\n")
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
