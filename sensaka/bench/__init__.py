"""Benchmarks: real paths under load, beside peers where there are any. `manage.py bench NAME`.

A module here has `run(options) -> Report` and a line in BENCHMARKS; it is imported when it is asked for.
"""

from collections.abc import Callable, Mapping
from importlib import import_module

from sensaka.bench.report import Options, Report

_MODULES: Mapping[str, str] = {
    "admission": "sensaka.bench.admission",
    "ingest": "sensaka.bench.ingest",
    "placement": "sensaka.bench.placement",
    "replay": "sensaka.bench.replay",
}


def _run(module: str) -> Callable[[Options], Report]:
    def run(options: Options) -> Report:
        report: Report = import_module(module).run(options)
        return report

    return run


BENCHMARKS: Mapping[str, Callable[[Options], Report]] = {name: _run(module) for name, module in _MODULES.items()}
