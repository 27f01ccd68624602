"""Django: its own migrations and those of a small app (django_shop), then the app's tests.

Usage: django_test.py PORT      (scripts/clients.sh starts the server and calls this)
"""
import contextlib
import datetime
import decimal
import io
import sys
import unittest

import django
from django.conf import settings

PORT = int(sys.argv.pop(1))
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": "127.0.0.1",
            "PORT": PORT,
            "USER": "nvcaracal",
            "NAME": "nvcaracal",
        }
    },
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "django_shop",
    ],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    SECRET_KEY="of a test",
    USE_TZ=True,
)
django.setup()

from django.contrib.auth.models import Permission, User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, NotSupportedError, connection, models, transaction  # noqa: E402
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, Subquery, Sum  # noqa: E402
from django.test import TestCase, TransactionTestCase  # noqa: E402
from django_shop.models import Article, Line, Order, Tag  # noqa: E402


ORDERED = "SELECT array_agg(n ORDER BY n) FROM generate_series(1, 2) AS n"


def setUpModule():
    call_command("migrate", verbosity=0)
    assert Permission.objects.count() > 20


def needs(query):
    """Skips a test, visibly, where the server does not have what Django's introspection asks."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(query)
    except NotSupportedError as error:
        raise unittest.SkipTest(f"SKIPPED: {query}: {error}") from None


class Migrations(unittest.TestCase):
    def test_all_are_there_and_nothing_is_missing(self):
        said = io.StringIO()
        call_command("showmigrations", stdout=said, no_color=True)
        self.assertNotIn("[ ]", said.getvalue())
        call_command("makemigrations", check=True, dry_run=True, verbosity=0)

    def test_they_go_back_and_forth(self):
        needs(ORDERED)
        call_command("migrate", "django_shop", "0001", verbosity=0)
        with connection.cursor() as cursor:
            columns = connection.introspection.get_table_description(cursor, "django_shop_article")
        self.assertNotIn("kind", [column.name for column in columns])
        call_command("migrate", "django_shop", "zero", verbosity=0)
        self.assertNotIn("django_shop_article", connection.introspection.table_names())
        call_command("migrate", verbosity=0)

    def test_tables_are_described(self):
        needs(ORDERED)
        with connection.cursor() as cursor:
            introspection = connection.introspection
            relations = introspection.get_relations(cursor, "django_shop_line")
            self.assertEqual(relations["order_id"][:2], ("id", "django_shop_order"))
            found = introspection.get_constraints(cursor, "django_shop_article")
            self.assertTrue(found["stock_is_good"]["check"])
            self.assertEqual(found["one_of_a_kind"]["columns"], ["name", "kind"])
            self.assertEqual(found["article_by_kind"]["orders"], ["ASC", "DESC"])
            key = introspection.get_primary_key_column(cursor, "django_shop_article")
            self.assertEqual(key, "id")
        said = io.StringIO()
        call_command("inspectdb", "django_shop_article", "django_shop_line", stdout=said)
        self.assertIn("models.DecimalField(max_digits=10, decimal_places=2)", said.getvalue())
        self.assertIn("models.ForeignKey('DjangoShopOrder'", said.getvalue())


class Shop(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.user = User.objects.create_user("ada", "ada@example.org", "secret")
        cls.tags = [Tag.objects.create(name=name) for name in ("new", "old")]
        cls.articles = Article.objects.bulk_create(
            Article(name=f"a{n}", kind="even" if n % 2 == 0 else "odd", price=n, stock=n)
            for n in range(10)
        )
        cls.articles[0].tags.set(cls.tags)
        cls.articles[1].tags.add(cls.tags[0])
        cls.order = Order.objects.create(customer=cls.user, waited=datetime.timedelta(hours=30))
        for n in (1, 2, 3):
            Line.objects.create(order=cls.order, article=cls.articles[n], count=n)

    def test_users(self):
        self.assertTrue(self.client.login(username="ada", password="secret"))
        self.assertFalse(self.client.login(username="ada", password="wrong"))

    def test_queries(self):
        names = lambda query: [article.name for article in query]  # noqa: E731
        cheap = Article.objects.filter(Q(price__lt=2) | Q(name__iexact="A9"))
        self.assertEqual(names(cheap), ["a0", "a1", "a9"])
        self.assertEqual(names(Article.objects.exclude(tags__name="new")[:2]), ["a2", "a3"])
        self.assertEqual(names(Article.objects.filter(name__contains="9")), ["a9"])
        self.assertEqual(names(Article.objects.filter(name__icontains="A9")), ["a9"])
        self.assertEqual(names(Article.objects.filter(name__in=["a3", "a5"])), ["a3", "a5"])
        self.assertEqual(names(Article.objects.order_by("-kind", "-price")[:2]), ["a9", "a7"])
        self.assertEqual(Article.objects.filter(tags__in=self.tags).distinct().count(), 2)
        self.assertEqual(self.order.lines.select_related("article").first().article.name, "a1")
        self.assertEqual(User.objects.filter(orders__lines__article__name="a2").get(), self.user)
        self.assertFalse(Article.objects.filter(name="nothing").exists())
        self.assertEqual(Article.objects.values_list("id", flat=True).last(), self.articles[9].id)
        self.assertEqual(Order.objects.get().waited, datetime.timedelta(hours=30))

    def test_aggregates_and_subqueries(self):
        total = Line.objects.aggregate(total=Sum(F("count") * F("article__price")))["total"]
        self.assertEqual(total, decimal.Decimal(14))
        kinds = Article.objects.order_by().values("kind").annotate(n=Count("id"), p=Avg("price"))
        found = sorted((kind["kind"], kind["n"], kind["p"]) for kind in kinds)
        self.assertEqual(found, [("even", 5, decimal.Decimal(4)), ("odd", 5, decimal.Decimal(5))])
        lines = Line.objects.filter(article=OuterRef("pk"))
        ordered = Article.objects.filter(Exists(lines))
        self.assertEqual(ordered.count(), 3)
        counted = Article.objects.annotate(ordered=Subquery(lines.values("count")[:1]))
        self.assertEqual(counted.get(name="a3").ordered, 3)
        tags = Article.objects.annotate(n=Count("tags")).filter(n__gt=0).order_by("name")
        self.assertEqual(list(tags.values_list("name", "n")), [("a0", 2), ("a1", 1)])
        days = Order.objects.dates("made", "day")
        self.assertEqual(len(days), 1)

    def test_changes(self):
        changed = Article.objects.filter(kind="odd").update(stock=F("stock") + 10)
        self.assertEqual(changed, 5)
        article = Article.objects.select_for_update().get(name="a9")
        self.assertEqual(article.stock, 19)
        article.about = {"size": [1, 2], "of": {"what": None}}
        article.picture = b"\x00\xff"
        article.save()
        article.refresh_from_db()
        self.assertEqual(article.about["size"], [1, 2])
        self.assertEqual(bytes(article.picture), b"\x00\xff")
        self.assertEqual(Article.objects.get(about__size=[1, 2]), article)
        tag, made = Tag.objects.get_or_create(name="new")
        self.assertFalse(made)
        tag, made = Tag.objects.update_or_create(name="newer", defaults={"name": "newest"})
        self.assertTrue(made)
        with self.assertRaises(IntegrityError), transaction.atomic():
            Tag.objects.create(name="old")
        with self.assertRaises(IntegrityError), transaction.atomic():
            Article.objects.filter(name="a1").update(stock=-1)
        with self.assertRaises(models.ProtectedError):
            self.articles[1].delete()
        Article.objects.bulk_update(
            [Article(id=one.id, price=100 + n) for n, one in enumerate(self.articles)], ["price"]
        )
        self.assertEqual(Article.objects.get(name="a5").price, 105)
        Tag.objects.bulk_create(
            [Tag(name="old"), Tag(name="oldest")], ignore_conflicts=True
        )
        self.assertEqual(Tag.objects.filter(name__startswith="old").count(), 2)
        self.user.delete()
        self.assertEqual(Line.objects.count(), 0)


class Blocks(TransactionTestCase):
    available_apps = ["django_shop", "django.contrib.auth", "django.contrib.contenttypes"]

    def test_nested_blocks(self):
        with transaction.atomic():
            Tag.objects.create(name="outer")
            try:
                with transaction.atomic():
                    Tag.objects.create(name="inner")
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
        self.assertEqual([tag.name for tag in Tag.objects.all()], ["outer"])

    def test_wrong_references_are_found(self):
        with self.assertRaises(IntegrityError):
            Line.objects.create(order_id=77, article_id=78)

    def test_rows_come_by_cursors(self):
        Tag.objects.bulk_create(Tag(name=str(n)) for n in range(25))
        for in_block in (False, True):
            with transaction.atomic() if in_block else contextlib.nullcontext():
                names = [tag.name for tag in Tag.objects.order_by("id").iterator(chunk_size=10)]
            self.assertEqual(names, [str(n) for n in range(25)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
