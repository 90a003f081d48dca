# One image for web, worker and beat. Built in two steps, so that compilers and npm stay out of it.
FROM python:3.11-slim-bookworm AS build
WORKDIR /app
COPY requirements.txt requirements-agent.txt ./
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements.txt
COPY . .
# the assets and static files need settings but no services; the values below are thrown away with this step
RUN SENSAKA_VAR=/build DJANGO_SETTINGS_MODULE=sensaka.settings.dev /venv/bin/python -m sensaka.assets \
 && SENSAKA_VAR=/build DJANGO_SETTINGS_MODULE=sensaka.settings.dev /venv/bin/python manage.py collectstatic --no-input

FROM python:3.11-slim-bookworm
RUN useradd --system --create-home --home-dir /var/lib/sensaka sensaka
COPY --from=build /venv /venv
COPY --from=build --chown=sensaka /app /app
COPY --from=build --chown=sensaka /build/static /var/lib/sensaka/static
COPY --from=build --chown=sensaka /build/assets /var/lib/sensaka/assets
WORKDIR /app
USER sensaka
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 SENSAKA_VAR=/var/lib/sensaka DJANGO_SETTINGS_MODULE=sensaka.settings.production
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz')"
CMD ["python", "-m", "gunicorn", "sensaka.asgi:application", "--worker-class", "uvicorn_worker.UvicornWorker", "--workers", "2", "--bind", "0.0.0.0:8000", "--keep-alive", "75"]
