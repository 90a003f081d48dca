"""IPMI 2.0 over LAN, on pyghmi's state machine and decoders with transport and deadlines of our own."""
