"""The shipped catalogue of accelerator models: data files and their reader, without Django.

Each figure carries a mark in `sources` that says how well it is known:

- `read`: printed by a device or its tools, as the device reports it
- `driver table`: from a driver's table of names
- `pci.ids`: from the public list of PCI ids
- `mig-parted`: from the vendor's MIG configuration files or MIG guide
- `datasheet`: from the vendor's datasheet as recalled, not read again: check before alarming on it

A figure that is not known, or that a vendor gives as a range, is left out. A slowdown temperature is
absent on boards that report margins in place of absolute thresholds.
"""

from inventory.catalogue.reader import MARKS, CatalogueError, Model, read_catalogue

__all__ = ["MARKS", "CatalogueError", "Model", "read_catalogue"]
