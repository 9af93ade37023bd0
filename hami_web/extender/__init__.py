"""HTTP edge for kube-scheduler and the API server: a codec and plain views."""
