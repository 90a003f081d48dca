"""manage.py bench NAME [--json] [--data DIR] [--seconds N] [--only TRACE ...] [--departures]"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sensaka.bench import BENCHMARKS
from sensaka.bench.report import Options, Report


class Command(BaseCommand):
    help = "Measures one path of Sensaka, beside a peer where there is one. With --json the last line is the result."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", choices=sorted(BENCHMARKS))
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
        parser.add_argument("--data", type=Path, help="folder with the traces that some benchmarks take")
        parser.add_argument(
            "--only", nargs="+", default=(), help="placement: these traces; replay: these months (2017-10)"
        )
        parser.add_argument("--departures", action="store_true", help="placement: tasks leave again")
        parser.add_argument("--seconds", type=float, default=20.0, help="how long each case is measured")

    def handle(self, *args: Any, **options: Any) -> None:
        run = BENCHMARKS[options["name"]]
        say = self.stderr.write if options["json"] else self.stdout.write
        report = run(
            Options(
                data=options["data"],
                seconds=options["seconds"],
                say=say,
                only=tuple(options["only"]),
                departures=options["departures"],
            )
        )
        if options["json"]:
            self.stdout.write(report.line())
        else:
            self._table(report)
        if report.failed:
            raise CommandError("; ".join(report.failed))

    def _table(self, report: Report) -> None:
        self.stdout.write(f"{report.name}: {', '.join(f'{key} {value}' for key, value in report.work.items())}")
        for row in report.rows:
            peer = f"   {row.peer}: {row.peer_value:,.1f}, ratio {row.ratio}" if row.peer_value else ""
            self.stdout.write(f"  {row.case:<44} {row.value:>14,.1f} {row.unit}{peer}")
        self.stdout.write(f"  {report.cpu_seconds:.1f} CPU-seconds in {report.wall_seconds:.1f} s")
