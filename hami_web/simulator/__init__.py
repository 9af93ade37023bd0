"""A Kubernetes small enough for one process: API server, scheduler and kubelets.

What the product meets over a socket, it meets here over a socket: real HTTP and real gRPC. One
contract suite (``tests/simulator/contract``) runs against this API server and a real one. Not
simulated: controllers (except the arithmetic of disruption budgets), quota enforcement, RBAC
objects (:mod:`hami_web.simulator.identity` has a table instead) and server-side apply.
"""
