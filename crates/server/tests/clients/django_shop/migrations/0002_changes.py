"""Changes of tables that have rows."""
from django.db import migrations, models


def add_rows(apps, schema_editor):
    apps.get_model("django_shop", "Article").objects.create(title="one", price=3)


def change_rows(apps, schema_editor):
    article = apps.get_model("django_shop", "Article").objects.get()
    assert (article.name, article.kind, article.price) == ("one", "other", 3), vars(article)
    article.delete()


class Migration(migrations.Migration):
    # PostgreSQL does not alter a table of which keys are still to be checked, nor does the server.
    atomic = False
    dependencies = [("django_shop", "0001_initial")]
    operations = [
        migrations.RunPython(add_rows, migrations.RunPython.noop),
        migrations.RenameField("article", "title", "name"),
        migrations.AlterField("article", "name", models.CharField(max_length=50)),
        migrations.AlterField(
            "article", "price", models.DecimalField(decimal_places=2, max_digits=10)
        ),
        migrations.AddField("article", "kind", models.SlugField(default="other")),
        migrations.AddField("article", "since", models.DateField(null=True)),
        migrations.RemoveField("article", "old"),
        migrations.RunPython(change_rows, migrations.RunPython.noop),
        migrations.AlterModelOptions(name="article", options={"ordering": ["id"]}),
        migrations.AddConstraint(
            "article",
            models.CheckConstraint(condition=models.Q(("stock__gte", 0)), name="stock_is_good"),
        ),
        migrations.AddConstraint(
            "article",
            models.UniqueConstraint(fields=("name", "kind"), name="one_of_a_kind"),
        ),
        migrations.AddIndex(
            "article", models.Index(fields=["kind", "-price"], name="article_by_kind")
        ),
    ]
