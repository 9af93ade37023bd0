"""End to end on a real Kubernetes: real scheduler, API server, kubelet and containerd.

``HAMI_TEST_KUBE`` names a folder whose ``up.sh`` and ``down.sh`` start and stop a single-node
cluster on loopback; the suite then runs extender and agent itself, the agent over a simulated
NVML. ``HAMI_TEST_KUBECONFIG`` names the kubeconfig of a cluster where the product is installed.
"""
