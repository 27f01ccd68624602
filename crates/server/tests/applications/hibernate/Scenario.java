import jakarta.persistence.LockModeType;
import jakarta.persistence.OptimisticLockException;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.LocalDate;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.hibernate.LockMode;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.hibernate.exception.ConstraintViolationException;

/** Hibernate: tables made and updated, a second start that validates, CRUD of six entities. */
public final class Scenario {
    private static SessionFactory factory;

    private static SessionFactory open(String action) {
        Configuration all = new Configuration()
            .setProperty("hibernate.connection.url", Steps.url())
            .setProperty("hibernate.connection.username", "nvcaracal")
            .setProperty("hibernate.connection.password", "")
            .setProperty("hibernate.hbm2ddl.auto", action)
            .setProperty("hibernate.hbm2ddl.halt_on_error", "true")
            .setProperty("hibernate.jdbc.batch_size", "20")
            .setProperty("hibernate.order_inserts", "true");
        List.of(Model.Customer.class, Model.Account.class, Model.Purchase.class, Model.Article.class,
            Model.Book.class, Model.Tag.class).forEach(all::addAnnotatedClass);
        return all.buildSessionFactory();
    }

    private static <T> T in(Function<Session, T> body) {
        return factory.fromTransaction(body);
    }

    private static void run(Consumer<Session> body) {
        factory.inTransaction(body);
    }

    public static void main(String[] arguments) {
        java.util.logging.Logger.getLogger("org.hibernate").setLevel(java.util.logging.Level.OFF);
        Steps.step("create", () -> open("create").close());
        Steps.step("update", () -> open("update").close());
        Steps.step("validate", () -> factory = open("validate"));
        if (factory == null) {
            factory = open("none");
        }
        Steps.step("persist", () -> run(session -> {
            Model.Customer ada = new Model.Customer();
            ada.name = "Ada";
            ada.email = "a@b";
            ada.born = LocalDate.of(1815, 12, 10);
            ada.about = Map.of("a", 1);
            ada.tags = new String[] {"x", "y"};
            ada.waited = Duration.ofHours(3);
            ada.phones.addAll(Set.of("1", "2"));
            ada.address = new Model.Address();
            ada.address.zip = "10";
            ada.account = new Model.Account();
            ada.account.picture = new byte[] {0, 1};
            Model.Book book = new Model.Book();
            book.name = "one";
            book.kind = "book";
            book.pages = 7;
            book.price = new BigDecimal("9.90");
            session.persist(book);
            for (int n = 0; n < 60; n++) {
                Model.Purchase purchase = new Model.Purchase();
                purchase.customer = ada;
                purchase.total = n;
                purchase.articles.add(book);
                ada.purchases.add(purchase);
            }
            session.persist(ada);
        }));
        Steps.step("a large text", () -> {
            run(session -> {
                Model.Tag tag = new Model.Tag();
                tag.label = "red";
                tag.text = "long";
                session.persist(tag);
            });
            Steps.same(in(session -> session.find(Model.Tag.class, "red").text), "long");
        });
        Steps.step("fetch", () -> run(session -> {
            Model.Customer ada = session.createQuery(
                "from Customer c join fetch c.purchases p where c.email = :email", Model.Customer.class)
                .setParameter("email", "a@b").getSingleResult();
            Steps.same(ada.purchases.size(), 60);
            Steps.same(ada.tags.length, 2);
            Steps.same(ada.about.get("a"), 1);
            Steps.same(ada.waited, Duration.ofHours(3));
            Steps.same(ada.phones, Set.of("1", "2"));
            Steps.same(ada.named, Model.Mood.OK);
        }));
        Steps.step("groups", () -> run(session -> Steps.same(session.createQuery(
            "select c.name, count(p), sum(p.total) from Purchase p join p.customer c group by c.name"
                + " having count(p) > 1 order by 2 desc", Object[].class).getSingleResult()[1], 60L)));
        Steps.step("functions", () -> run(session -> Steps.same(session.createQuery(
            "select upper(c.name) || '-' || cast(year(c.born) as string), "
                + "extract(month from c.born), coalesce(c.address.street, 'none'), "
                + "c.born + 1 day, current_timestamp, locate('d', c.name), listagg(c.name, ',') "
                + "within group (order by c.name) from Customer c group by c.id", Object[].class)
            .getSingleResult()[0], "ADA-1815")));
        Steps.step("pages", () -> Steps.same(in(session -> session.createQuery(
            "from Purchase order by id", Model.Purchase.class).setFirstResult(10).setMaxResults(5)
            .getResultList().size()), 5));
        Steps.step("inheritance", () -> Steps.same(in(session -> session.createQuery(
            "from Article a where type(a) = Book and a.price > 5", Model.Article.class)
            .getResultList().size()), 1));
        Steps.step("subqueries, EXISTS, member of", () -> Steps.same(in(session -> session.createQuery(
            "select count(c) from Customer c where exists (from Purchase p where p.customer = c and "
                + "p.total = (select max(q.total) from Purchase q)) and '1' member of c.phones",
            Long.class).getSingleResult()), 1L));
        Steps.step("an update of many", () -> Steps.same(in(session -> session.createMutationQuery(
            "update Purchase set paid = true where total > 50").executeUpdate()), 9));
        Steps.step("an insert of a query", () -> in(session -> session.createMutationQuery(
            "insert into Tag (label) select c.name from Customer c on conflict do nothing")
            .executeUpdate()));
        Steps.step("merge and orphans", () -> {
            Model.Customer ada = in(session -> {
                Model.Customer found = session.find(Model.Customer.class, 1L);
                org.hibernate.Hibernate.initialize(found.purchases);
                return found;
            });
            ada.name = "Bea";
            ada.purchases.remove(0);
            run(session -> session.merge(ada));
            Steps.same(in(session -> session.createQuery("select count(p) from Purchase p", Long.class)
                .getSingleResult()), 59L);
        });
        Steps.step("an old version", () -> {
            Model.Customer old = in(session -> session.find(Model.Customer.class, 1L));
            run(session -> session.find(Model.Customer.class, 1L).name = "Cy");
            old.name = "Di";
            try {
                run(session -> session.merge(old));
            } catch (OptimisticLockException | org.hibernate.StaleObjectStateException error) {
                return;
            }
            throw new AssertionError("the old version is written");
        });
        Steps.step("locks", () -> run(session -> {
            session.find(Model.Customer.class, 1L, LockModeType.PESSIMISTIC_WRITE).name = "Ed";
            session.createQuery("from Purchase", Model.Purchase.class)
                .setHibernateLockMode(LockMode.UPGRADE_SKIPLOCKED).setMaxResults(1).getResultList();
        }));
        Steps.step("scrolling", () -> run(session -> {
            int seen = 0;
            try (var rows = session.createQuery("from Purchase", Model.Purchase.class).setFetchSize(10)
                    .scroll(org.hibernate.ScrollMode.FORWARD_ONLY)) {
                while (rows.next()) {
                    seen++;
                }
            }
            Steps.same(seen, 59);
        }));
        Steps.step("a key that is taken", () -> {
            try {
                run(session -> {
                    Model.Customer again = new Model.Customer();
                    again.name = "again";
                    again.email = "a@b";
                    session.persist(again);
                });
            } catch (ConstraintViolationException error) {
                Steps.same(error.getSQLState(), "23505");
                return;
            }
            throw new AssertionError("no error");
        });
        Steps.step("remove", () -> {
            run(session -> session.remove(session.find(Model.Customer.class, 1L)));
            Steps.same(in(session -> session.createQuery("select count(p) from Purchase p", Long.class)
                .getSingleResult()), 0L);
        });
        factory.close();
        Steps.step("create and drop", () -> open("create-drop").close());
        System.exit(0);
    }
}
