"""The control plane's access to Kubernetes."""
