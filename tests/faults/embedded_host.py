"""A small host process for the embedded services: starts both on a folder, says so, waits to be killed."""

import sys
import time
from pathlib import Path

from sensaka import embedded


def main() -> None:
    layout = embedded.Layout(Path(sys.argv[1]))
    postgres, redis = embedded.PostgreSQL(layout), embedded.Redis(layout)
    postgres.start()
    redis.start()
    assert postgres.process is not None
    assert redis.process is not None
    print(postgres.process.pid, redis.process.pid, layout.postgres_socket, layout.redis_socket, flush=True)
    if "--stop" in sys.argv:
        redis.stop()
        postgres.stop()
        return
    time.sleep(120)


if __name__ == "__main__":
    main()
