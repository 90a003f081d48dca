"""`python -m inventory.agent`."""

import sys

from inventory.agent.cli import main

sys.exit(main(sys.argv[1:]))
