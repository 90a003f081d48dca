from django.apps import AppConfig


class BenchConfig(AppConfig):
    name = "sensaka.bench"
