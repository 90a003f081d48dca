from django.apps import AppConfig


class CockpitConfig(AppConfig):
    name = "sensaka.cockpit"
