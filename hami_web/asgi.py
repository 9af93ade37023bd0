"""The web role as an ASGI application: starts to watch the cluster, then answers."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")  # noqa: TID251

from django.conf import settings
from django.core.asgi import get_asgi_application

from hami_web.dashboard.service import WebService
from hami_web.dashboard.sub_path import SubPath

django_application = SubPath(get_asgi_application(), settings.BASE_PATH)

from hami_web.history.vitals import VitalsWatch  # noqa: E402  # models need the application

application = WebService(
    django_application,
    kubeconfig=settings.KUBECONFIG,
    pool_labels=settings.POOL_LABELS,
    worker=VitalsWatch(compare_every_s=settings.RECONCILE_SECONDS),
)
