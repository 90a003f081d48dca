"""What the tables stand on: the exclusion constraints' operators, and the numbers that key samples."""

from django.contrib.postgres.operations import BtreeGistExtension
from django.db import migrations


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        BtreeGistExtension(),
        migrations.RunSQL("CREATE SEQUENCE inventory_series AS integer", "DROP SEQUENCE inventory_series"),
    ]
