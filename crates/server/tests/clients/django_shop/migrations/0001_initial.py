"""The tables."""
import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

KEY = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    initial = True
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        migrations.CreateModel(
            name="Tag",
            fields=[("id", KEY), ("name", models.CharField(max_length=30, unique=True))],
        ),
        migrations.CreateModel(
            name="Article",
            fields=[
                ("id", KEY),
                ("title", models.CharField(max_length=20)),
                ("price", models.IntegerField()),
                ("stock", models.IntegerField(default=0)),
                ("about", models.JSONField(default=dict)),
                ("code", models.UUIDField(default=uuid.uuid4)),
                ("is_sold", models.BooleanField(default=True)),
                ("picture", models.BinaryField(null=True)),
                ("old", models.TextField(default="old")),
                ("tags", models.ManyToManyField(related_name="articles", to="django_shop.tag")),
            ],
        ),
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", KEY),
                ("made", models.DateTimeField(auto_now_add=True)),
                ("waited", models.DurationField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Line",
            fields=[
                ("id", KEY),
                ("count", models.PositiveSmallIntegerField(default=1)),
                (
                    "article",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="django_shop.article"
                    ),
                ),
                (
                    "order",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lines",
                        to="django_shop.order",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="order",
            name="articles",
            field=models.ManyToManyField(through="django_shop.Line", to="django_shop.article"),
        ),
        migrations.AddField(
            model_name="order",
            name="customer",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="orders",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
