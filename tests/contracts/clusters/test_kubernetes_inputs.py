"""What comes in and goes out of the Kubernetes driver as text: kubeconfigs, Jobs to start, refusals. No server."""

from typing import Any

import pytest

from inventory.drivers.clusters.capabilities import JobSpec
from inventory.drivers.clusters.kubernetes import KubeconfigError, access_in_cluster, access_of
from inventory.drivers.clusters.kubernetes.errors import KubernetesError, from_status, status_of
from inventory.drivers.clusters.kubernetes.submission import command_of, job_body, name_of, resource_of
from inventory.drivers.clusters.readings import Accelerators, CardKind, ClusterNode


def spec(**changes: Any) -> JobSpec:
    fixed = {"name": "My Job_1", "script": "echo $$ $(id) $HOME", "mark": "sensaka:r1", "working_directory": ""}
    return JobSpec(**(fixed | {"image": "busybox", "account": "team-a"} | changes))


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("echo $$ $(id) $HOME", ["/bin/sh", "-c", "echo $$$$ $$(id) $$HOME"]),
        ("#!/bin/bash -e\ntrue", ["/bin/bash", "-e", "-c", "#!/bin/bash -e\ntrue"]),
        ("#!/usr/bin/env python3\nprint(1)", ["/usr/bin/env", "python3", "-c", "#!/usr/bin/env python3\nprint(1)"]),
    ],
)
def test_a_script_arrives_as_it_is(script: str, command: list[str]) -> None:
    """P11: Kubernetes replaces $(NAME) and halves $$ in commands; the first line names the interpreter."""
    assert command_of(script) == command


def test_a_gang_is_an_indexed_job() -> None:
    """P11: one pod on each named node, its cards, its limit; the mark is found again and makes the name."""
    body = job_body(
        spec(nodes=("a", "b"), cards=2, time_limit=90, environment={"PRICE": "$(5)"}),
        "team-a",
        "nvidia.com/gpu",
        {},
        set(),
    )
    fields, inner = body["spec"], body["spec"]["template"]["spec"]
    assert (fields["completionMode"], fields["completions"], fields["parallelism"]) == ("Indexed", 2, 2)
    assert (fields["activeDeadlineSeconds"], fields["suspend"]) == (90, False)
    assert body["metadata"]["name"] == name_of(spec()) == f"my-job-1-{name_of(spec())[-10:]}"
    assert name_of(spec(mark="sensaka:r2")) != name_of(spec())
    assert body["metadata"]["annotations"]["sensaka/mark"] == "sensaka:r1"
    terms = inner["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [one["matchFields"][0]["values"] for one in terms] == [["a"], ["b"]]
    assert inner["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert inner["containers"][0]["env"] == [{"name": "PRICE", "value": "$$(5)"}]


def test_queues_need_somebody_who_keeps_them() -> None:
    """P11: Kueue's label with a Job that waits for it, Volcano's annotation with its scheduler, else a refusal."""
    kueue = job_body(spec(queue="gold"), "team-a", "", {}, {"kueue.x-k8s.io"})
    volcano = job_body(spec(queue="gold"), "team-a", "", {}, {"scheduling.volcano.sh"})
    assert (kueue["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], kueue["spec"]["suspend"]) == ("gold", True)
    template = volcano["spec"]["template"]
    assert template["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "gold"
    assert template["spec"]["schedulerName"] == "volcano"
    with pytest.raises(KubernetesError, match="neither Kueue nor Volcano"):
        job_body(spec(queue="gold"), "team-a", "", {}, set())
    with pytest.raises(KubernetesError, match="image"):
        job_body(spec(image=""), "team-a", "", {}, set())


def test_which_resource_a_card_type_is() -> None:
    """P11: by product or by resource; too few, unhealthy and ambiguous cards are refused in words."""

    def having(name: str, resource: str, kind: str, unhealthy: int = 0) -> ClusterNode:
        cards = Accelerators(kind=CardKind.CARD, type=kind, resource=resource, total=8, unhealthy=unhealthy)
        return ClusterNode(name=name, accelerators=(cards,))

    nodes = [having("a", "nvidia.com/gpu", "H100"), having("b", "amd.com/gpu", "MI300X", unhealthy=2)]
    assert resource_of(spec(cards=8, card_type="H100"), nodes)[0] == "nvidia.com/gpu"
    assert resource_of(spec(cards=6, card_type="amd.com/gpu"), nodes)[0] == "amd.com/gpu"
    assert resource_of(spec(), nodes) == ("", None)
    for asked, words in (
        (spec(cards=7, card_type="MI300X"), "healthy"),
        (spec(cards=2), "name the card type"),
        (spec(cards=1, card_type="B200"), "B200"),
        (spec(cards=1, card_type="H100", node_count=2), "too few nodes"),
    ):
        with pytest.raises(KubernetesError, match=words):
            resource_of(asked, nodes)


def kubeconfig(cluster: str = "", user: str = "token: t") -> str:
    return f"""
current-context: main
contexts: [{{name: main, context: {{cluster: north, user: me}}}}]
clusters: [{{name: north, cluster: {{server: "https://k8s.example:6443", {cluster}}}}}]
users: [{{name: me, user: {{{user}}}}}]
"""


REFUSED = [
    (kubeconfig(user="exec: {command: aws}"), "would run a program"),
    (kubeconfig(user="auth-provider: {name: gcp}"), "would run a program"),
    (kubeconfig(cluster="certificate-authority: /etc/ssl/ca.pem"), "names a file"),
    (kubeconfig(user="tokenFile: /etc/shadow"), "names a file"),
    (kubeconfig(user="client-key: /root/key, token: t"), "names a file"),
    (kubeconfig(cluster="insecure-skip-tls-verify: true"), "anybody"),
    (kubeconfig(user="username: a, password: b"), "not supported"),
    (kubeconfig(user="as: admin, token: t"), "not supported"),
    (kubeconfig(user="client-certificate-data: YWJj"), "needs its key"),
    (kubeconfig(user="x: y"), "neither a token"),
    (kubeconfig(cluster="certificate-authority-data: '!!'"), "not base64"),
    (kubeconfig().replace("https://", "http://"), "https"),
    (kubeconfig().replace("name: me,", "name: you,"), "no user"),
    ("[1, 2]", "no kubeconfig"),
    ("a: [", "no YAML"),
    ("{}", "current-context"),
    ("x" * 1_000_001, "longer"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_a_kubeconfig_may_not_do(text: str, words: str) -> None:
    """P11: it comes from a form: no program, no file of this machine, no unchecked server; said in words."""
    with pytest.raises(KubeconfigError, match=words):
        access_of(text)


def test_a_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    """P11: server, authority and token are read; the token is shown nowhere; outside a pod there is no account."""
    access = access_of(kubeconfig("certificate-authority-data: UEVN"), "main")
    assert (access.server, access.name, access.ca, access.token) == ("https://k8s.example:6443", "north", "PEM", "t")
    assert repr(access) == "Access(https://k8s.example:6443)"
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeconfigError, match="pod"):
        access_in_cluster()


def test_answers_that_are_no_status() -> None:
    """P11: a proxy's page in front of the API server is told as it is."""
    error = from_status("GET /x", 502, status_of(b"<html>Bad Gateway</html>"))
    assert (error.kind, "Bad Gateway" in error.detail) == ("unreachable", True)
