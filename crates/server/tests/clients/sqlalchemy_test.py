"""SQLAlchemy 2: tables made by metadata, the ORM with relations, and reflection of what was made.

Usage: sqlalchemy_test.py PORT      (scripts/clients.sh starts the server and calls this)
"""
import datetime
import decimal
import sys
import unittest
import uuid
from typing import List, Optional

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.orm import (
    DeclarativeBase, Mapped, Session, joinedload, mapped_column, relationship, selectinload,
)

PORT = 0


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(40), unique=True)
    born: Mapped[Optional[datetime.date]]
    credit: Mapped[decimal.Decimal] = mapped_column(sa.Numeric(12, 2), default=0)
    about: Mapped[Optional[dict]] = mapped_column(JSONB)
    token: Mapped[uuid.UUID] = mapped_column(default=uuid.uuid4)
    orders: Mapped[List["Order"]] = relationship(
        back_populates="customer", cascade="all, delete-orphan", order_by="Order.id"
    )


class Order(Base):
    __tablename__ = "order"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(sa.ForeignKey("customer.id", ondelete="CASCADE"))
    total: Mapped[float] = mapped_column(sa.CheckConstraint("total >= 0", name="total_is_good"))
    made: Mapped[datetime.datetime] = mapped_column(
        sa.DateTime(timezone=True), server_default=sa.func.now()
    )
    customer: Mapped[Customer] = relationship(back_populates="orders")
    __table_args__ = (sa.Index("order_by_total", "customer_id", "total"),)


class SqlAlchemy(unittest.TestCase):
    def setUp(self):
        url = f"postgresql+psycopg://nvcaracal@127.0.0.1:{PORT}/nvcaracal"
        self.engine = sa.create_engine(url)
        self.addCleanup(self.engine.dispose)
        Base.metadata.drop_all(self.engine)
        Base.metadata.create_all(self.engine)

    def test_the_orm_writes_and_reads(self):
        with Session(self.engine) as session:
            ada = Customer(name="Ada", born=datetime.date(1815, 12, 10), about={"a": [1]})
            ada.orders = [Order(total=n) for n in range(5)]
            session.add_all([ada, Customer(name="Bob", credit=decimal.Decimal("12.50"))])
            session.commit()
            self.assertEqual([order.id for order in ada.orders], [1, 2, 3, 4, 5])
            self.assertIsNotNone(ada.orders[0].made.tzinfo)
        with Session(self.engine) as session:
            for loaded in (joinedload, selectinload):
                query = sa.select(Customer).options(loaded(Customer.orders)).order_by(Customer.id)
                ada, bob = session.scalars(query).unique().all()
                self.assertEqual([order.total for order in ada.orders], [0, 1, 2, 3, 4])
                self.assertEqual(bob.credit, decimal.Decimal("12.50"))
                session.expunge_all()
            query = (
                sa.select(Customer.name, sa.func.count(Order.id), sa.func.sum(Order.total))
                .outerjoin(Order).group_by(Customer.name).order_by(Customer.name)
            )
            self.assertEqual(session.execute(query).all(), [("Ada", 5, 10.0), ("Bob", 0, None)])
            ada = session.scalars(sa.select(Customer).where(Customer.name.like("A%"))).one()
            ada.orders[0].total = 100
            session.delete(ada.orders[1])
            session.flush()
            session.rollback()
            self.assertEqual([order.total for order in ada.orders], [0, 1, 2, 3, 4])
            session.delete(ada)
            session.commit()
            self.assertEqual(session.scalar(sa.select(sa.func.count()).select_from(Order)), 0)

    def test_many_rows_and_conflicts(self):
        with Session(self.engine) as session:
            made = session.scalars(
                sa.insert(Customer).returning(Customer.id, sort_by_parameter_order=True),
                [{"name": f"c{n}"} for n in range(2_500)],
            )
            self.assertEqual(made.all(), list(range(1, 2_501)))
            session.commit()
            upsert = insert(Customer).values(name="c7", credit=7, token=uuid.uuid4())
            upsert = upsert.on_conflict_do_update(
                index_elements=["name"], set_={"credit": upsert.excluded.credit}
            ).returning(Customer.id, Customer.credit)
            self.assertEqual(session.execute(upsert).one(), (8, decimal.Decimal("7.00")))
            session.commit()
            with self.assertRaises(sa.exc.IntegrityError):
                session.add(Order(customer_id=99_999, total=1))
                session.commit()
            session.rollback()
            with self.assertRaises(sa.exc.IntegrityError) as raised:
                session.add(Order(customer_id=1, total=-1))
                session.commit()
            self.assertIn("total_is_good", str(raised.exception))
            session.rollback()
            with session.begin_nested():
                session.add(Order(customer_id=1, total=1))
            streamed = sa.select(Customer.id).order_by(Customer.id)
            rows = session.execute(streamed, execution_options={"yield_per": 1_000})
            self.assertEqual(sum(1 for _ in rows), 2_500)
            paged = sa.select(Customer.id).order_by(Customer.id.desc()).limit(2).offset(1)
            self.assertEqual(session.scalars(paged).all(), [2_499, 2_498])
            ranked = sa.select(Customer.id).where(
                Customer.id.in_([1, 2, 3]), sa.exists().where(Order.customer_id == Customer.id)
            )
            self.assertEqual(session.scalars(ranked).all(), [1])

    def test_isolation_levels(self):
        for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            with self.engine.connect().execution_options(isolation_level=level) as connection:
                self.assertEqual(connection.scalar(sa.text("SELECT 1")), 1)
                self.assertEqual(connection.get_isolation_level(), level)

    def test_tables_are_reflected(self):
        try:
            with self.engine.connect() as connection:
                connection.execute(sa.text("SELECT json_build_object('a', 1)"))
        except sa.exc.ProgrammingError as error:
            self.skipTest(f"SKIPPED: json_build_object: {error.orig}")
        inspector = sa.inspect(self.engine)
        self.assertEqual(set(inspector.get_table_names()) & {"customer", "order"}, {"customer", "order"})
        self.assertTrue(inspector.has_table("order"))
        self.assertFalse(inspector.has_table("nothing"))
        columns = {column["name"]: column for column in inspector.get_columns("customer")}
        self.assertIsInstance(columns["about"]["type"], JSONB)
        self.assertEqual((columns["credit"]["type"].precision, columns["credit"]["type"].scale), (12, 2))
        self.assertEqual(columns["name"]["type"].length, 40)
        self.assertTrue(columns["born"]["nullable"])
        key = inspector.get_pk_constraint("order")
        self.assertEqual((key["name"], key["constrained_columns"]), ("order_pkey", ["id"]))
        (foreign,) = inspector.get_foreign_keys("order")
        self.assertEqual(foreign["referred_table"], "customer")
        self.assertEqual(foreign["options"], {"ondelete": "CASCADE"})
        index = [index for index in inspector.get_indexes("order") if index["name"] == "order_by_total"]
        self.assertEqual(index[0]["column_names"], ["customer_id", "total"])
        (check,) = inspector.get_check_constraints("order")
        self.assertEqual(check["name"], "total_is_good")
        (unique,) = inspector.get_unique_constraints("customer")
        self.assertEqual(unique["column_names"], ["name"])
        reflected = sa.MetaData()
        reflected.reflect(self.engine)
        self.assertEqual(
            [column.name for column in reflected.tables["order"].columns],
            ["id", "customer_id", "total", "made"],
        )


if __name__ == "__main__":
    PORT = int(sys.argv.pop(1))
    unittest.main(verbosity=2)
