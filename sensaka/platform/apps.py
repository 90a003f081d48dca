from django.apps import AppConfig


class PlatformConfig(AppConfig):
    name = "sensaka.platform"
    label = "sensaka_platform"
