from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "sensaka.live"

    def ready(self) -> None:
        from sensaka import wiring

        wiring.connect()
