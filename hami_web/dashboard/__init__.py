"""The dashboard: pages for people, drawn from what the cluster says now. Reads, never writes."""
