"""Migrates Django's own applications, and uses its ORM, transactions, users, sessions and schema editor on tables of all fields."""

import datetime
import decimal
import io
import uuid

import pymysql

from checks import PORT, check, equal, finish

# Django asks for mysqlclient; PyMySQL stands in for it under that name and version.
pymysql.version_info = (2, 2, 7, "final", 0)
pymysql.__version__ = "2.2.7"
pymysql.install_as_MySQLdb()

import django  # noqa: E402
from django.conf import settings  # noqa: E402

with pymysql.connect(host="127.0.0.1", port=PORT, user="root") as bare:
    bare.cursor().execute("CREATE DATABASE shop")

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.mysql", "NAME": "shop", "USER": "root", "HOST": "127.0.0.1",
                           "PORT": str(PORT)}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django.contrib.admin",
                    "django.contrib.messages"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", SECRET_KEY="a", USE_TZ=True, TIME_ZONE="UTC",
)
django.setup()

from django.contrib.auth import authenticate  # noqa: E402
from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, models, transaction  # noqa: E402
from django.db.models import (  # noqa: E402
    Avg, Case, Count, Exists, F, Max, Min, OuterRef, Q, StdDev, Subquery, Sum, Value, When, Window)
from django.db.models.functions import (  # noqa: E402
    MD5, Coalesce, Concat, ExtractWeekDay, ExtractYear, Length, Lower, RowNumber, Substr, TruncDay, TruncMonth, Upper)

MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=datetime.timezone.utc)
MONTH = MOMENT.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
DAY = datetime.timedelta(days=1)


class Order(models.Model):
    id = models.BigIntegerField(primary_key=True)
    name = models.CharField(max_length=50)
    number = models.IntegerField(null=True)
    price = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    moment = models.DateTimeField(null=True)
    text = models.TextField(default="")
    done = models.BooleanField(default=True)
    part = models.FloatField(null=True)

    class Meta:
        app_label = "shop"


class Item(models.Model):
    name = models.CharField(max_length=50)
    order = models.ForeignKey(Order, on_delete=models.CASCADE)

    class Meta:
        app_label = "shop"


class Rest(models.Model):
    id = models.BigIntegerField(primary_key=True)
    document = models.JSONField(null=True)
    uuid = models.UUIDField(null=True)
    duration = models.DurationField(null=True)
    time = models.TimeField(null=True)
    date = models.DateField(null=True)
    slug = models.SlugField(max_length=20, default="s")
    small = models.PositiveSmallIntegerField(null=True)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        app_label = "shop"


class Blob(models.Model):
    id = models.BigIntegerField(primary_key=True)
    content = models.BinaryField()

    class Meta:
        app_label = "shop"


NAMES = ["alpha", "Beta", "GAMMA", "delta"]
PLAIN = {
    Order: "CREATE TABLE shop_order (id BIGINT NOT NULL, name VARCHAR(50) NOT NULL, number INT, price DECIMAL(10,2), moment DATETIME(6),"
           " text STRING, done BOOLEAN, part DOUBLE) UNIQUE KEY(id)",
}


def create(model):
    with connection.schema_editor() as editor:
        editor.create_model(model)
    return model._meta.db_table in connection.introspection.table_names()


def fill():
    for number, name in enumerate(NAMES, 1):
        Order.objects.create(id=number, name=name, number=number, price=decimal.Decimal("1.50") * number, text=f"text {number}",
                             moment=MOMENT + DAY * number, part=number / 2)
    Order.objects.bulk_create([Order(id=number, name=f"n{number}") for number in range(10, 60)])
    return Order.objects.count()


def ids(**lookup):
    return list(Order.objects.filter(**lookup).order_by("id").values_list("id", flat=True))


def value(key, field):
    return Order.objects.filter(id=key).values_list(field, flat=True)[0]


def save():
    order = Order.objects.get(id=3)
    order.name = "saved"
    order.save()
    return value(3, "name"), Order.objects.count()


def rest():
    row = dict(document={"a": 1, "list": [1, "x"], "s": "ü"}, uuid=uuid.UUID(int=7), duration=datetime.timedelta(hours=5),
               time=datetime.time(1, 2, 3, 400), date=datetime.date(2024, 2, 29), small=65535, address="10.0.0.1")
    Rest.objects.create(id=1, **row)
    found = Rest.objects.get(id=1)
    equal({name: getattr(found, name) for name in row}, row)


def blob():
    Blob.objects.create(id=1, content=b"\x00\xff\x80abc")
    return bytes(Blob.objects.get(id=1).content)


def roll_back():
    try:
        with transaction.atomic():
            Order.objects.create(id=900, name="lost")
            raise KeyError
    except KeyError:
        return Order.objects.filter(id=900).exists()


def commit():
    with transaction.atomic():
        Order.objects.create(id=901, name="kept")
        Order.objects.create(id=902, name="kept")
    return ids(name="kept")


def nested():
    with transaction.atomic():
        Order.objects.create(id=910, name="outer")
        try:
            with transaction.atomic():
                Order.objects.create(id=911, name="outer")
                raise KeyError
        except KeyError:
            pass
    return ids(name="outer")


def update_in_transaction():
    with transaction.atomic():
        Order.objects.filter(id=2).update(name="inside")
    return value(2, "name")


def lock():
    with transaction.atomic():
        return [order.id for order in Order.objects.select_for_update().filter(id=1)]


def users():
    user = User.objects.create_user("joe", "joe@example.com", "secret")
    group = Group.objects.create(name="staff")
    user.groups.add(group)
    user.user_permissions.add(*Permission.objects.order_by("id")[:3])
    return (authenticate(username="joe", password="secret") == user, authenticate(username="joe", password="other"),
            list(User.objects.filter(groups__name="staff").values_list("username", flat=True)), user.user_permissions.count())


def session():
    store = SessionStore()
    store["cart"] = [1, 2]
    store.save()
    return SessionStore(store.session_key)["cart"]


def keys_of_new_objects():
    made = [Item.objects.create(name=f"item {number}", order_id=1) for number in range(3)]
    equal(sorted(item.pk for item in made), sorted(Item.objects.values_list("id", flat=True)))
    equal(len({item.pk for item in made}), 3)


def alter():
    field = models.IntegerField(null=True)
    field.set_attributes_from_name("extra")
    field.model = Order
    wider = models.CharField(max_length=80)
    wider.set_attributes_from_name("name")
    wider.model = Order
    with connection.schema_editor() as editor:
        editor.add_field(Order, field)
        editor.alter_field(Order, Order._meta.get_field("name"), wider)
    described = connection.introspection.get_table_description(connection.cursor(), "shop_order")
    return [column.name for column in described][-1], value(1, "name")


def rename():
    with connection.schema_editor() as editor:
        editor.alter_db_table(Item, "shop_item", "shop_renamed")
    names = connection.introspection.table_names()
    return "shop_renamed" in names, "shop_item" in names


def delete_model():
    with connection.schema_editor() as editor:
        editor.delete_model(Rest)
    return "shop_rest" in connection.introspection.table_names()


def inspect():
    out = io.StringIO()
    call_command("inspectdb", "shop_order", stdout=out)
    return [phrase in out.getvalue() for phrase in ("BigIntegerField", "DecimalField(max_digits=10", "DateTimeField")]


check("connect", lambda: connection.ensure_connection())
if not connection.is_usable() if connection.connection else True:
    # No check can pass without a connection, so the rest is left to the count of checks.
    finish()
check("migrate", lambda: (call_command("migrate", verbosity=0), {"auth_user", "django_session", "django_admin_log"} <= set(
    connection.introspection.table_names()))[1], True)
check("migrate again", lambda: (call_command("migrate", verbosity=0), Permission.objects.count() > 15)[1], True)
for model in (Order, Item, Rest, Blob):
    check(f"create {model.__name__}", lambda: create(model), True)
# Most checks read the orders, so they are there even if Django's own statement was refused.
if "shop_order" not in connection.introspection.table_names():
    connection.cursor().execute(PLAIN[Order])
check("create objects", fill, 54)
check("moment", lambda: Order.objects.get(id=1).moment, MOMENT + DAY)
check("decimal and float", lambda: (value(3, "price"), value(3, "part")), (decimal.Decimal("4.50"), 1.5))
for lookup, sought, expected in (
    ("exact", "alpha", [1]), ("iexact", "BETA", [2]), ("contains", "lph", [1]), ("icontains", "ALPH", [1]), ("startswith", "al", [1]),
    ("istartswith", "gam", [3]), ("endswith", "lta", [4]), ("iendswith", "ETA", [2]), ("regex", "^a.*a$", [1]),
    ("iregex", "^g", [3]), ("in", ["alpha", "delta"], [1, 4]),
):
    check(f"lookup {lookup}", lambda: ids(**{f"name__{lookup}": sought}, id__lt=10), expected)
check("lookup isnull", lambda: len(ids(number__isnull=True)), 50)
check("lookup range of moments", lambda: ids(moment__range=(MOMENT, MOMENT + DAY * 2)), [1, 2])
check("lookup date", lambda: ids(moment__date=datetime.date(2024, 1, 3)), [1])
check("lookup year and month", lambda: ids(moment__year=2024, moment__month=1), [1, 2, 3, 4])
check("truncate to months", lambda: list(Order.objects.filter(moment__isnull=False).annotate(m=TruncMonth("moment"))
                                         .values("m").annotate(c=Count("id")).values_list("m", "c")), [(MONTH, 4)])
check("truncate to days", lambda: [m.day for m in Order.objects.filter(id__lt=3).annotate(d=TruncDay("moment")).order_by("id")
                                   .values_list("d", flat=True)], [3, 4])
check("datetimes", lambda: [m.day for m in Order.objects.datetimes("moment", "day")], [3, 4, 5, 6])
check("aggregates", lambda: Order.objects.aggregate(s=Sum("number"), a=Avg("price"), x=Max("moment"), n=Min("part"),
                                                    c=Count("name", distinct=True)),
      dict(s=10, a=decimal.Decimal("3.75"), x=MOMENT + DAY * 4, n=0.5, c=54))
check("standard deviation", lambda: round(Order.objects.aggregate(d=StdDev("number"))["d"], 4), 1.118)
check("group with having", lambda: list(Order.objects.values("done").annotate(c=Count("id")).filter(c__gt=3)
                                        .values_list("done", "c")), [(True, 54)])
check("window", lambda: list(Order.objects.filter(id__lt=10).annotate(r=Window(RowNumber(), order_by=F("number").desc()), s=Window(
    Sum("number"), partition_by=F("done"))).order_by("id").values_list("r", "s")), [(4, 10), (3, 10), (2, 10), (1, 10)])
check("case", lambda: list(Order.objects.filter(id__lt=5).annotate(k=Case(When(number__gt=2, then=Value("big")), default=Value(
    "small"))).order_by("id").values_list("k", flat=True)), ["small", "small", "big", "big"])
check("functions", lambda: Order.objects.filter(id=1).values_list(
    Upper("name"), Lower("name"), Length("name"), Concat("name", Value("-"), "name"), Coalesce("number", Value(0)),
    Substr("name", 2, 2), MD5("name"), ExtractYear("moment"), ExtractWeekDay("moment"))[0],
    ("ALPHA", "alpha", 5, "alpha-alpha", 1, "lp", "2c1743a391305fbf367df8e4f069f9f9", 2024, 4))
check("expressions of columns", lambda: Order.objects.filter(number=F("id")).count(), 4)
check("or and not", lambda: Order.objects.filter(Q(number=1) | ~Q(name__startswith="n")).count(), 4)
check("union", lambda: Order.objects.filter(id=1).union(Order.objects.filter(id=2)).count(), 2)
check("distinct", lambda: Order.objects.values("done").distinct().count(), 1)
check("slice", lambda: [order.id for order in Order.objects.order_by("id")[3:6]], [4, 10, 11])
check("iterator", lambda: sum(1 for _ in Order.objects.iterator(chunk_size=10)), 54)
check("raw", lambda: [order.name for order in Order.objects.raw("SELECT * FROM shop_order WHERE id = %s", [2])], ["Beta"])
check("update", lambda: (Order.objects.filter(id=1).update(name="updated"), value(1, "name"), value(1, "number")), (1, "updated", 1))
check("update by expression", lambda: (Order.objects.filter(id=2).update(number=F("number") + 5), value(2, "number")), (1, 7))
check("save", save, ("saved", 54))
check("get_or_create", lambda: [Order.objects.get_or_create(id=100, defaults={"name": name})[1] for name in "ab"] + [
    value(100, "name")], [True, False, "a"])
check("update_or_create", lambda: (Order.objects.update_or_create(id=100, defaults={"name": "c"})[1], value(100, "name")),
      (False, "c"))
check("bulk_update", lambda: (Order.objects.bulk_update([Order(id=3, name="x"), Order(id=4, name="y")], ["name"]),
                              value(3, "name"), value(4, "name"), value(4, "number")), (2, "x", "y", 4))
check("bulk_create that ignores conflicts", lambda: (Order.objects.bulk_create(
    [Order(id=3, name="again"), Order(id=60, name="n60")], ignore_conflicts=True), value(3, "name"), value(60, "name"))[1:], ("x", "n60"))
# Before 4.1 nothing but MySQL's columns decided which conflict it is, so no unique fields are named.
check("bulk_create that updates", lambda: (Order.objects.bulk_create(
    [Order(id=3, name="again")], update_conflicts=True, update_fields=["name"]), value(3, "name"), value(3, "number"))[1:], ("again", 3))
check("keys of new objects", keys_of_new_objects)
check("related objects", lambda: sorted(Item.objects.select_related("order").values_list("name", "order__name")),
      [(f"item {number}", "updated") for number in range(3)])
check("prefetch", lambda: [len(order.item_set.all()) for order in Order.objects.prefetch_related("item_set").order_by("id")[:2]], [3, 0])
check("subqueries", lambda: (list(Order.objects.annotate(c=Subquery(Item.objects.filter(order=OuterRef("pk")).values("order").annotate(
    c=Count("id")).values("c"))).filter(id=1).values_list("c", flat=True)),
    Order.objects.filter(Exists(Item.objects.filter(order=OuterRef("pk")))).count()), ([3], 1))
check("other fields", rest)
check("lookups into JSON", lambda: [Rest.objects.filter(**lookup).count() for lookup in (
    {"document__a": 1}, {"document__has_key": "s"}, {"document__contains": {"a": 1}}, {"document__list__1": "x"}, {"document__a": 2})],
    [1, 1, 1, 1, 0])
check("bytes", blob, b"\x00\xff\x80abc")
check("delete", lambda: (Order.objects.filter(id__gte=10, id__lt=60).delete()[0], ids(id__lt=60)), (50, [1, 2, 3, 4]))
check("atomic that fails", roll_back, False)
check("atomic", commit, [901, 902])
check("nested atomic", nested, [910])
check("update in a transaction", update_in_transaction, "inside")
check("select_for_update", lock, [1])
check("users, groups and permissions", users, (True, None, ["joe"], 3))
check("session", session, [1, 2])
check("describe", lambda: [(c.name, c.null_ok) for c in connection.introspection.get_table_description(
    connection.cursor(), "shop_order")][:3], [("id", False), ("name", False), ("number", True)])
check("primary key is found", lambda: [c["columns"] for c in connection.introspection.get_constraints(
    connection.cursor(), "shop_order").values() if c["primary_key"]], [["id"]])
check("inspectdb", inspect, [True, True, True])
check("add and change a field", alter, ("extra", "updated"))
check("rename a table", rename, (True, False))
check("delete a model", delete_model, False)
finish()
