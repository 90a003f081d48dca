from django.apps import AppConfig


class IdentityConfig(AppConfig):
    name = "sensaka.identity"
    label = "identity"
