"""Control plane for dynamic MIG on Kubernetes.

This module stays empty of imports: the node agent imports ``hami_web.core`` and must not pull in
anything else with it.
"""
