"""SCAN: every conjunction is looked at for every event."""
