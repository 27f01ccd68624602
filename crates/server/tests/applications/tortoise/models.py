"""What the application keeps."""
from tortoise import fields
from tortoise.models import Model


class Person(Model):
    id = fields.IntField(primary_key=True)
    name = fields.CharField(max_length=40, default="x", db_index=True, description="a name")
    email = fields.TextField(null=True)
    code = fields.CharField(max_length=20, unique=True, null=True)
    credit = fields.DecimalField(max_digits=10, decimal_places=2, default=0)
    about = fields.JSONField(default=dict)
    token = fields.UUIDField(null=True)
    at = fields.DatetimeField(auto_now_add=True)
    is_in = fields.BooleanField(default=True)
    groups = fields.ManyToManyField("models.Group", related_name="people")

    class Meta:
        table_description = "people"


class Visit(Model):
    id = fields.BigIntField(primary_key=True)
    person = fields.ForeignKeyField("models.Person", related_name="visits")
    score = fields.FloatField()

    class Meta:
        unique_together = (("person", "score"),)
        indexes = [("score", "id")]


class Group(Model):
    id = fields.UUIDField(primary_key=True)
    label = fields.CharField(max_length=20, unique=True)
