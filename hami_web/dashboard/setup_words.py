"""The words of the setup page: what is checked, and what mends it."""

from __future__ import annotations

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TITLES: Final[dict[str, Promise]] = {
    "api-server": _("The API server answers"),
    "rights-extender": _("The extender has its rights"),
    "rights-node-agent": _("The node agents have their rights"),
    "rights-worker": _("The worker has its rights"),
    "rights-web": _("This dashboard has its rights"),
    "extender": _("The extender answers"),
    "scheduler": _("kube-scheduler asks the extender"),
    "webhook": _("The webhook is registered and trusted"),
    "certificate": _("The extender's certificate is valid"),
    "signing": _("Reservations are signed"),
    "nodes": _("Nodes publish their GPUs"),
    "agents": _("Every node's agent is there"),
    "capability": _("What the nodes publish can be read"),
    "owner": _("Nothing else cuts managed GPUs"),
    "database": _("The database answers"),
    "migrations": _("The database has all migrations"),
    "feed": _("The worker follows the cluster"),
    "queue": _("Beat sends tasks, and the broker's queue is worked off"),
    "comparison": _("The mirror is compared with the cluster"),
    "clocks": _("The clocks agree"),
    "hosts": _("Only named hosts are answered"),
    "cookies": _("Cookies are sent over HTTPS only"),
    "secret": _("Sign-ins outlive a restart"),
    "debug": _("Debugging is off"),
}
"""By code, in the order of the page."""

MENDS: Final[dict[str, Promise]] = {
    "api-server": _("See that the Pod of the web role reaches the API server, and what it may do."),
    "rights-extender": _("Apply the extender's roles again."),
    "rights-node-agent": _("Apply the node agent's roles again."),
    "rights-worker": _("Apply the worker's roles again."),
    "rights-web": _("Apply the web role's roles again."),
    "extender": _("See whether the extender runs and leads, and HAMI_EXTENDER_URL of the worker."),
    "scheduler": _("See that kube-scheduler has the extender in its configuration."),
    "webhook": _("Apply the webhook with the authority of the extender's certificate."),
    "certificate": _("Compare its dates, and its authority with the webhook's CA bundle."),
    "signing": _("Give extender and agents the same HAMI_SIGNING_KEYS."),
    "nodes": _("Label a GPU node, and see that the agent runs there and what it says."),
    "agents": _("Look at the Leases and the log of the agents on these nodes."),
    "capability": _("Look at the device configuration and the log of the agents on these nodes."),
    "owner": _("Decide which of the two owns the node, and stop the other."),
    "database": _("See that the database runs, and HAMI_DATABASE_URL."),
    "migrations": _("Run the migrations once, then restart."),
    "feed": _("See whether the worker runs, and its log."),
    "queue": _("See whether the worker and the broker run, and HAMI_BROKER_URL."),
    "comparison": _("See the worker's log: a comparison that fails says why."),
    "clocks": _("Let all nodes follow one source of time."),
    "hosts": _("Name the hosts by which people reach the dashboard."),
    "cookies": _("Serve the dashboard over HTTPS and say so."),
    "secret": _("Give the web role a lasting secret key."),
    "debug": _("Turn it off: error pages would tell settings to everyone."),
}

COMMANDS: Final[dict[str, str]] = {
    "api-server": "kubectl auth can-i list pods -A --as={account}:hami-web",
    "rights-extender": "kubectl apply -f deploy/rbac/extender.yaml",
    "rights-node-agent": "kubectl apply -f deploy/rbac/node-agent.yaml",
    "rights-worker": "kubectl apply -f deploy/rbac/worker.yaml",
    "rights-web": "kubectl apply -f deploy/rbac/web.yaml",
    "extender": "kubectl -n {namespace} get lease hami-extender -o yaml",
    "scheduler": "kubectl -n {namespace} get configmap -o yaml | grep -A20 extenders",
    "webhook": "kubectl get mutatingwebhookconfiguration hami-webhook -o yaml",
    "certificate": "kubectl -n {namespace} get secret --field-selector type=kubernetes.io/tls",
    "signing": "kubectl get pods -A -o yaml | grep hami.io/vgpu-mig-signature",
    "nodes": "kubectl get nodes -l gpu=on -o wide",
    "agents": "kubectl -n {namespace} get lease -l hami.io/lease=node-agent",
    "capability": "kubectl get nodes -o yaml | grep hami.io/node-nvidia-register",
    "owner": "kubectl get nodes -L nvidia.com/mig.config,nvidia.com/mig.config.state",
    "database": "python manage.py check --database default",
    "migrations": "python manage.py migrate",
    "feed": "kubectl -n {namespace} get pods -o wide",
    "queue": "kubectl -n {namespace} get pods -o wide",
    "comparison": "kubectl -n {namespace} get pods -o wide",
    "clocks": "timedatectl status",
    "hosts": "HAMI_ALLOWED_HOSTS=dashboard.example.org",
    "cookies": "HAMI_WEB_HTTPS=true",
    "secret": "HAMI_SECRET_KEY_FILE=/etc/hami/secret-key",
    "debug": "HAMI_DEBUG=false",
}
"""What to copy; ``namespace`` is that of our Leases, ``account`` the prefix of its accounts."""
