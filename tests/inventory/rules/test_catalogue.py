"""Which catalogue entry a card is (I2): the rule, and the files that are shipped."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.catalogue import MARKS, CatalogueError, Model, read_catalogue
from inventory.rules.catalogue import Entry, match, words

GIB = 1024**3
MODELS = read_catalogue()
ENTRIES = [Entry(model.slug, (*model.name_strings, model.name), tuple(model.pci_ids), model.memory) for model in MODELS]


def found(**said) -> str | None:
    entry = match(ENTRIES, **said)
    return entry.key if entry else None


CASES = [
    ("by PCI id", {"pci_id": "10de:2330"}, "nvidia-h100-sxm-80"),
    ("PCI id in capitals", {"pci_id": "10DE:2330"}, "nvidia-h100-sxm-80"),
    ("PCI id with 0x", {"pci_id": "0x10de:0x2330"}, "nvidia-h100-sxm-80"),
    ("PCI id over a wrong name", {"pci_id": "10de:2335", "name": "NVIDIA H100 PCIe"}, "nvidia-h200-sxm"),
    ("one id, two boards, name decides", {"pci_id": "10de:25b6", "name": "NVIDIA A2"}, "nvidia-a2"),
    ("one id, two boards, nothing decides", {"pci_id": "10de:25b6", "memory": 16 * GIB}, None),
    ("one id, two sizes, memory decides", {"pci_id": "19e5:d802", "memory": 32 * GIB}, "huawei-ascend-910b4"),
    ("unknown id, known name", {"pci_id": "10de:ffff", "name": "NVIDIA H200"}, "nvidia-h200-sxm"),
    ("name of a new driver", {"name": "NVIDIA A100-SXM4-80GB"}, "nvidia-a100-sxm4-80"),
    ("name of an old driver", {"name": "A100-SXM4-40GB"}, "nvidia-a100-sxm4-40"),
    ("name with blanks replaced", {"name": "NVIDIA-H100-80GB-HBM3"}, "nvidia-h100-sxm-80"),
    ("name of a slice", {"name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}, "nvidia-h100-sxm-80"),
    ("shared in a label", {"name": "NVIDIA-A30-SHARED"}, "nvidia-a30"),
    ("Tesla kept or dropped", {"name": "NVIDIA T4"}, "nvidia-t4"),
    ("case", {"name": "nvidia l40s"}, "nvidia-l40s"),
    ("size apart from its unit", {"name": "NVIDIA A100 80 GB PCIe"}, "nvidia-a100-pcie-80"),
    ("words around the name", {"name": "HGX NVIDIA H100 80GB HBM3 Baseboard"}, "nvidia-h100-sxm-80"),
    ("L40 is not L40S", {"name": "NVIDIA L40"}, "nvidia-l40"),
    ("a family alone is not its members", {"name": "NVIDIA H100 Something"}, None),
    ("AMD with OAM", {"name": "AMD Instinct MI300X OAM"}, "amd-mi300x"),
    ("AMD virtual function", {"pci_id": "1002:74b5"}, "amd-mi300x"),
    ("id shared by MI250 and MI250X", {"pci_id": "1002:740c", "name": "AMD Instinct MI250"}, "amd-mi250"),
    ("Gaudi 3", {"name": "HL-325L"}, "intel-gaudi3-oam"),
    ("Intel Max", {"name": "Intel(R) Data Center GPU Max 1550"}, "intel-max-1550"),
    ("Ascend", {"name": "910B3"}, "huawei-ascend-910b"),
    ("a name that two generations share", {"name": "Ascend910"}, None),
    ("an unknown card", {"name": "NVIDIA GeForce RTX 4090", "pci_id": "10de:2684"}, None),
    ("nothing said", {}, None),
]


@pytest.mark.parametrize(("said", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_card_finds_its_entry(said, expected):
    assert found(**said) == expected


def test_a_subsystem_goes_before_the_device():
    plain, special = Entry("plain", (), ("10de:1111",)), Entry("special", (), ("10de:1111:10de:2222",))
    said = {"pci_id": "10de:1111"}
    assert match([plain, special], **said, subsystem_id="10de:2222") is special
    assert match([plain, special], **said, subsystem_id="10de:3333") is plain
    assert match([special], **said) is None


def test_every_shipped_name_and_id_leads_to_its_model():
    for model in MODELS:
        for name in (*model.name_strings, model.name):
            assert found(name=name, memory=model.memory) == model.slug, name
        for pci_id in model.pci_ids:
            assert found(pci_id=pci_id, name=model.name, memory=model.memory) == model.slug, pci_id


@given(st.text(), st.text(), st.integers(0, 2**50) | st.none())
def test_whatever_a_card_says_the_answer_is_an_entry_or_none(name, pci_id, memory):
    assert match(ENTRIES, name=name, pci_id=pci_id, memory=memory) in (*ENTRIES, None)
    assert words(name) == words(name.upper()) or name.upper().lower() != name.lower()


@given(st.permutations(ENTRIES))
def test_the_order_of_the_catalogue_does_not_matter(entries):
    for said in ({"name": "NVIDIA A100 80GB PCIe"}, {"pci_id": "10de:25b6", "name": "NVIDIA A16"}, {"name": "H100"}):
        assert match(entries, **said) == match(ENTRIES, **said)


def test_the_shipped_catalogue_covers_what_it_promises():
    """I2: at least 25 models of four vendors, each figure with its mark."""
    assert len(MODELS) >= 30
    assert {model.vendor for model in MODELS} == {"NVIDIA", "AMD", "Intel", "Huawei"}
    by_slug = {model.slug: model for model in MODELS}
    h100 = by_slug["nvidia-h100-sxm-80"]
    assert (h100.memory, h100.tdp, h100.nvlink_links, h100.slowdown_temperature) == (85520809984, 700, 18, None)
    assert {"name": "1g.10gb", "count": 7} in h100.mig_profiles
    assert h100.sources["memory"] == "read"
    assert by_slug["nvidia-a100-sxm4-40"].slowdown_temperature == 89
    assert by_slug["nvidia-v100-sxm2-16"].mig_profiles == []
    for model in MODELS:
        assert set(model.sources.values()) <= MARKS


GOOD = {"slug": "a-b", "vendor": "V", "name": "N", "tdp": "300", "sources": "{tdp: read}"}


def write(folder: Path, **changes: str) -> Path:
    lines = [f"    {key}: {value}" for key, value in {**GOOD, **changes}.items()]
    (folder / "site.yaml").write_text("models:\n  -\n" + "\n".join(lines) + "\n")
    return folder


def test_a_small_file_is_read(tmp_path):
    assert read_catalogue(write(tmp_path)) == [
        Model("a-b", "V", "N", [], [], tdp=300, sources={"tdp": "read"}),
    ]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"slug": "A B"}, "slug: lower-case words"),
        ({"vendor": "''"}, "vendor: a text"),
        ({"tdp": "lots"}, "tdp: a whole number"),
        ({"tdp": "true"}, "tdp: a whole number"),
        ({"memory": "80"}, "memory: an amount"),
        ({"pci_ids": "['10DE:2330']"}, "pci_ids: '10DE:2330'"),
        ({"mig_profiles": "{1g.5gb: 9}"}, "mig_profiles: 1g.5gb can exist"),
        ({"mig_profiles": "{big: 1}"}, "mig_profiles: 'big'"),
        ({"colour": "green"}, "colour: unknown key"),
        ({"sources": "{}"}, "sources: tdp needs one of"),
        ({"sources": "{tdp: hearsay}"}, "sources: tdp needs one of"),
        ({"sources": "{tdp: read, memory: read}"}, "sources: memory has a mark but no figure"),
    ],
)
def test_a_mistake_names_file_model_and_key(tmp_path, changes, complaint):
    with pytest.raises(CatalogueError) as error:
        read_catalogue(write(tmp_path, **changes))
    assert str(error.value).startswith("site.yaml, model 1")
    assert complaint in str(error.value)


@pytest.mark.parametrize("text", ["", "models: 5\n", "[", "models:\n  - 3\n", "sources: 1\nmodels: []\n"])
def test_a_file_that_is_no_catalogue_is_named(tmp_path, text):
    (tmp_path / "site.yaml").write_text(text)
    with pytest.raises(CatalogueError, match=r"^site\.yaml"):
        read_catalogue(tmp_path)


def test_a_slug_that_is_there_twice_is_named(tmp_path):
    write(tmp_path)
    (tmp_path / "z.yaml").write_text((tmp_path / "site.yaml").read_text())
    with pytest.raises(CatalogueError, match=r"z\.yaml: slug: 'a-b' is there twice"):
        read_catalogue(tmp_path)
