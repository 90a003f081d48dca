"""What opening no Kubernetes costs: nothing of its client."""

import subprocess
import sys


def test_the_client_of_kubernetes_is_imported_when_one_is_opened() -> None:
    code = (
        "import sys, inventory.drivers.clusters as clusters\n"
        "large = {'aiohttp', 'pydantic', 'kubernetes'}\n"
        "assert not large & sys.modules.keys(), large & sys.modules.keys()\n"
        "try: clusters.open_kubernetes(clusters.KubernetesTarget(kubeconfig='no kubeconfig'))\n"
        "except ValueError: print('aiohttp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
