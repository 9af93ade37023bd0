"""The MIG domain, standard library only."""
