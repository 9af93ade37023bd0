"""What the sign-in page asks for."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from hami_web.access.models import NAME_MAX

TOKEN_MAX = 10_000


class PasswordForm(forms.Form):
    """Name and password of a person of this database."""

    username = forms.CharField(
        label=_("Name"),
        max_length=NAME_MAX,
        widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=1000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class TokenForm(forms.Form):
    """A token of the cluster, as of a ServiceAccount."""

    token = forms.CharField(
        label=_("Kubernetes token"),
        max_length=TOKEN_MAX,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
