"""How much work a cluster carries under each placement rule, by simulation."""
