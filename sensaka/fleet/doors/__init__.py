"""The doors by which the product meets the simulated fleet: BMCs, exporter pages, agents."""
