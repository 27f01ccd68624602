"""What the shop keeps."""
import uuid

from django.db import models


class Tag(models.Model):
    name = models.CharField(max_length=30, unique=True)

    def __str__(self):
        return self.name


class Article(models.Model):
    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(stock__gte=0), name="stock_is_good"),
            models.UniqueConstraint(fields=["name", "kind"], name="one_of_a_kind"),
        ]
        indexes = [models.Index(fields=["kind", "-price"], name="article_by_kind")]
        ordering = ["id"]

    name = models.CharField(max_length=50)
    kind = models.SlugField(default="other")
    price = models.DecimalField(max_digits=10, decimal_places=2)
    stock = models.IntegerField(default=0)
    about = models.JSONField(default=dict)
    code = models.UUIDField(default=uuid.uuid4)
    is_sold = models.BooleanField(default=True)
    picture = models.BinaryField(null=True)
    since = models.DateField(null=True)
    tags = models.ManyToManyField(Tag, related_name="articles")


class Order(models.Model):
    made = models.DateTimeField(auto_now_add=True)
    customer = models.ForeignKey("auth.User", on_delete=models.CASCADE, related_name="orders")
    articles = models.ManyToManyField(Article, through="Line")
    waited = models.DurationField(null=True)


class Line(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    article = models.ForeignKey(Article, on_delete=models.PROTECT)
    count = models.PositiveSmallIntegerField(default=1)
