"""Use-cases of scheduling, named as kube-scheduler names them; no HTTP, no database."""
