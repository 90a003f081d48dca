"""IPMI 2.0 over LAN: pyghmi's state machine and decoders, with transport and deadlines of our own."""

from inventory.drivers.bmc.ipmi.driver import IpmiBmc, export_records, import_records

__all__ = ["IpmiBmc", "export_records", "import_records"]
