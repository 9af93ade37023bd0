"""The kubelet's device-plugin API, and the node agent's side of it."""
