from django.apps import AppConfig


class CockpitConfig(AppConfig):
    name = "sensaka.cockpit"

    def ready(self) -> None:
        from sensaka.cockpit import metrics

        metrics.register()
