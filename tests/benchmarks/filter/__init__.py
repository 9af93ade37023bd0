"""How fast a decision is made, in one process and over HTTP."""
