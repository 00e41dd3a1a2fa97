import jakarta.persistence.CascadeType;
import jakarta.persistence.CollectionTable;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.Lob;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.StaleObjectStateException;
import org.hibernate.cfg.Configuration;

/** Hibernate against a server: HibernateChecks BINARY [CHECK...] */
public class HibernateChecks {
    private static String url;

    /** A town with people. */
    @Entity(name = "Town")
    @Table(name = "towns")
    public static class Town {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        @Column(nullable = false, length = 80)
        String title;

        @OneToMany(mappedBy = "town", cascade = CascadeType.ALL, orphanRemoval = true)
        List<Person> people = new ArrayList<>();
    }

    /** Kinds of people, stored by name. */
    public enum Kind {
        GUEST,
        MEMBER
    }

    /** A person with a column of each common type. */
    @Entity(name = "Person")
    @Table(name = "people")
    public static class Person {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        @Column(nullable = false)
        String name;

        @Enumerated(EnumType.STRING)
        Kind kind;

        boolean active;
        int points;

        @Column(precision = 12, scale = 2)
        BigDecimal balance;

        double weight;
        LocalDate born;
        LocalDateTime seen;
        Instant created;

        @Lob
        String notes;

        byte[] picture;

        @ManyToOne
        @JoinColumn(name = "town_id")
        Town town;

        @ElementCollection
        @CollectionTable(name = "people_tags")
        Set<String> tags = new HashSet<>();

        @Version
        int version;
    }

    /** An entity whose identifiers come from a table of sequences. */
    @Entity(name = "Numbered")
    @Table(name = "numbered")
    public static class Numbered {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE)
        Long id;

        String text;
    }

    /** An entity whose identifiers are made by the program. */
    @Entity(name = "Thing")
    @Table(name = "unique_things")
    public static class Thing {
        @Id
        String id = UUID.randomUUID().toString();

        String text;
    }

    /** An entity whose key and value are bytes. */
    @Entity(name = "Bytes")
    @Table(name = "bytes")
    public static class Bytes {
        @Id
        UUID id = UUID.randomUUID();

        byte[] value;
    }

    public static void main(String[] arguments) throws Exception {
        Server server = Server.start(arguments[0], "?SERVER_VERSION=8.0.36", "?MYSQL_DDL=compat");
        url = "jdbc:mysql://127.0.0.1:" + server.mysqlPort() + "/";
        java.util.logging.LogManager.getLogManager().reset();
        Checks checks = new Checks("hibernate", List.of(arguments).subList(1, arguments.length));
        checks.check("create_schema", () -> factory("hib", "create-only").close());
        checks.check("create_and_read", HibernateChecks::createAndRead);
        checks.check("update_and_delete", HibernateChecks::updateAndDelete);
        checks.check("queries", HibernateChecks::queries);
        checks.check("stale_version_is_refused", HibernateChecks::staleVersion);
        checks.check("rollback", HibernateChecks::rollback);
        checks.check("sequence_identifiers", HibernateChecks::sequences);
        checks.check("batch_of_inserts", HibernateChecks::batch);
        checks.check("merge_detached", HibernateChecks::merge);
        checks.check("identifiers_and_values_of_bytes", HibernateChecks::bytes);
        checks.check("validate_schema", () -> factory("hib", "validate").close());
        checks.check("update_schema_changes_nothing", HibernateChecks::updateSchema);
        checks.check("drop_and_create_schema", HibernateChecks::dropAndCreate);
        checks.finish();
    }

    private static SessionFactory factory(String schema, String action) {
        return configuration(schema, action).addAnnotatedClass(Town.class).addAnnotatedClass(Person.class)
                .addAnnotatedClass(Numbered.class).addAnnotatedClass(Thing.class).buildSessionFactory();
    }

    private static Configuration configuration(String schema, String action) {
        return new Configuration()
                .setProperty("hibernate.connection.url", url + schema + "?createDatabaseIfNotExist=true&connectionTimeZone=UTC")
                .setProperty("hibernate.connection.username", "root")
                .setProperty("hibernate.connection.password", "")
                .setProperty("hibernate.hbm2ddl.auto", action)
                // Dropping what does not exist yet fails with every server.
                .setProperty("hibernate.hbm2ddl.halt_on_error", String.valueOf(!action.equals("create-drop")))
                .setProperty("hibernate.jdbc.time_zone", "UTC")
                .setProperty("hibernate.jdbc.batch_size", "50");
    }

    /** Work in a transaction. */
    private interface Work {
        void run(Session session) throws Exception;
    }

    private static void transaction(SessionFactory factory, Work work) throws Exception {
        try (Session session = factory.openSession()) {
            session.beginTransaction();
            try {
                work.run(session);
                session.getTransaction().commit();
            } catch (Throwable error) {
                if (session.getTransaction().isActive()) {
                    session.getTransaction().rollback();
                }
                throw error;
            }
        }
    }

    private static Person person(String name, int points, Town town) {
        Person person = new Person();
        person.name = name;
        person.kind = points > 10 ? Kind.MEMBER : Kind.GUEST;
        person.active = points > 10;
        person.points = points;
        person.balance = new BigDecimal("12.50").add(new BigDecimal(points));
        person.weight = 61.25;
        person.born = LocalDate.of(1990, 2, 28);
        person.seen = LocalDateTime.of(2024, 3, 31, 2, 30, 15, 123456000);
        person.created = Instant.parse("2024-03-31T01:30:15.654321Z");
        person.notes = "n".repeat(5000) + "ä€😀'\"\\";
        person.picture = new byte[] {1, 2, 3, 4};
        person.town = town;
        person.tags.add("a");
        person.tags.add("b");
        return person;
    }

    private static void fill(SessionFactory factory) throws Exception {
        transaction(factory, session -> {
            Town oslo = new Town();
            oslo.title = "Oslo";
            Town bergen = new Town();
            bergen.title = "Bergen";
            oslo.people.add(person("Ada", 20, oslo));
            oslo.people.add(person("Ben", 5, oslo));
            bergen.people.add(person("Cleo", 30, bergen));
            session.persist(oslo);
            session.persist(bergen);
        });
    }

    private static void createAndRead() throws Exception {
        try (SessionFactory factory = factory("create_and_read", "create-only")) {
            fill(factory);
            transaction(factory, session -> {
                Person ada = session.createQuery("from Person where name = 'Ada'", Person.class).getSingleResult();
                Person wanted = person("Ada", 20, null);
                Checks.same(wanted.kind, ada.kind, "kind");
                Checks.same(true, ada.active, "active");
                Checks.same(0, ada.balance.compareTo(wanted.balance), "balance");
                Checks.same(wanted.weight, ada.weight, "weight");
                Checks.same(wanted.born, ada.born, "born");
                Checks.same(wanted.seen, ada.seen, "seen");
                Checks.same(wanted.created.truncatedTo(ChronoUnit.MICROS), ada.created, "created");
                Checks.same(wanted.notes, ada.notes, "notes");
                Checks.same(4, ada.picture.length, "picture");
                Checks.same((byte) 3, ada.picture[2], "picture");
                Checks.same(wanted.tags, new HashSet<>(ada.tags), "tags");
                Checks.same("Oslo", ada.town.title, "town");
                Checks.same(3L, session.createQuery("select count(*) from Person", Long.class).getSingleResult(), "people");
                Checks.same(2, session.createQuery("from Town where title = 'Oslo'", Town.class).getSingleResult().people.size(),
                        "people of Oslo");
            });
        }
    }

    private static void updateAndDelete() throws Exception {
        try (SessionFactory factory = factory("update_and_delete", "create-only")) {
            fill(factory);
            transaction(factory, session -> {
                Person ben = session.createQuery("from Person where name = 'Ben'", Person.class).getSingleResult();
                ben.points = 6;
                ben.notes = null;
                ben.tags.remove("a");
                ben.tags.add("c");
            });
            transaction(factory, session -> {
                Person ben = session.createQuery("from Person where name = 'Ben'", Person.class).getSingleResult();
                Checks.same(6, ben.points, "points");
                Checks.same(null, ben.notes, "notes");
                Checks.same(Set.of("b", "c"), new HashSet<>(ben.tags), "tags");
                Checks.same(1, ben.version, "version");
                session.remove(ben.town.people.remove(0));
            });
            transaction(factory, session -> {
                Checks.same(2L, session.createQuery("select count(*) from Person", Long.class).getSingleResult(), "people");
                Checks.same(2, session.createMutationQuery("update Person set points = points + 1").executeUpdate(), "updated");
                Checks.same(1, session.createMutationQuery("delete from Numbered where id = -1").executeUpdate() + 1, "deleted");
            });
            transaction(factory, session -> {
                Checks.same(2L, session.createQuery("select count(*) from Person where points in (7, 31, 21)", Long.class)
                        .getSingleResult(), "people with more points");
                Town bergen = session.createQuery("from Town where title = 'Bergen'", Town.class).getSingleResult();
                session.remove(bergen);
            });
            transaction(factory, session ->
                    Checks.same(1L, session.createQuery("select count(*) from Person", Long.class).getSingleResult(), "people"));
        }
    }

    private static void queries() throws Exception {
        try (SessionFactory factory = factory("queries", "create-only")) {
            fill(factory);
            transaction(factory, session -> {
                Checks.same(List.of("Ada", "Cleo"), session.createQuery(
                        "select p.name from Person p join p.town t where p.points > :least and t.title in ('Oslo', 'Bergen') order by p.name",
                        String.class).setParameter("least", 10).getResultList(), "join");
                List<Object[]> groups = session.createQuery(
                        "select t.title, count(p), sum(p.balance), max(p.seen) from Town t left join t.people p group by t.title order by t.title",
                        Object[].class).getResultList();
                Checks.same(2, groups.size(), "groups");
                Checks.same(2L, groups.get(1)[1], "people of Oslo");
                Checks.same(0, new BigDecimal("50.00").compareTo((BigDecimal) groups.get(1)[2]), "sum");
                Checks.same(List.of("Ben"), session.createQuery("select name from Person order by name", String.class)
                        .setFirstResult(1).setMaxResults(1).getResultList(), "page");
                Checks.same(List.of("Ben"), session.createQuery(
                        "select name from Person where lower(name) like '%e%' and not kind = :kind", String.class)
                        .setParameter("kind", Kind.MEMBER).getResultList(), "like");
                Checks.same(List.of("Cleo"), session.createQuery(
                        "select p.name from Person p where p.points = (select max(q.points) from Person q)", String.class)
                        .getResultList(), "subquery");
                Checks.same(2L, session.createQuery(
                        "select count(distinct t.id) from Town t where exists (select 1 from Person p where p.town = t and 'a' member of p.tags)",
                        Long.class).getSingleResult(), "member of");
                Checks.same(1990, session.createQuery("select distinct year(born) from Person", Integer.class).getSingleResult(), "year");
                Checks.same(3, session.createQuery("select concat(name, ' ', upper(town.title)), coalesce(notes, ''), "
                        + "case when points > 10 then 'much' else 'little' end from Person", Object[].class).getResultList().size(), "functions");
                Checks.same(1L, session.createQuery("select count(*) from Person where seen between :from and :to and name = 'Ada'", Long.class)
                        .setParameter("from", LocalDateTime.of(2024, 1, 1, 0, 0)).setParameter("to", LocalDateTime.of(2025, 1, 1, 0, 0))
                        .getSingleResult(), "between");
                Checks.same(2, session.createQuery("select distinct t from Town t join fetch t.people p left join fetch p.tags", Town.class)
                        .getResultList().size(), "fetch");
                Checks.same(3, session.createNativeQuery("select name from people", String.class).getResultList().size(), "native");
                Checks.same(List.of(1L, 2L, 3L), session.createQuery(
                        "select row_number() over (order by points) from Person order by points", Long.class).getResultList(), "window");
            });
        }
    }

    private static void staleVersion() throws Exception {
        try (SessionFactory factory = factory("stale_version", "create-only")) {
            fill(factory);
            try (Session first = factory.openSession(); Session second = factory.openSession()) {
                Person one = first.createQuery("from Person where name = 'Ada'", Person.class).getSingleResult();
                Person two = second.createQuery("from Person where name = 'Ada'", Person.class).getSingleResult();
                first.beginTransaction();
                one.points = 1;
                first.getTransaction().commit();
                second.beginTransaction();
                two.points = 2;
                try {
                    second.getTransaction().commit();
                    throw new AssertionError("the stale version was written");
                } catch (jakarta.persistence.OptimisticLockException expected) {
                    Checks.holds(expected.getCause() instanceof StaleObjectStateException || expected.getCause() != null, "cause");
                }
            }
            transaction(factory, session ->
                    Checks.same(1, session.createQuery("select points from Person where name = 'Ada'", Integer.class).getSingleResult(), "points"));
        }
    }

    private static void rollback() throws Exception {
        try (SessionFactory factory = factory("rollback", "create-only")) {
            try (Session session = factory.openSession()) {
                session.beginTransaction();
                Thing thing = new Thing();
                thing.text = "gone";
                session.persist(thing);
                session.flush();
                session.getTransaction().rollback();
            }
            transaction(factory, session ->
                    Checks.same(0L, session.createQuery("select count(*) from Thing", Long.class).getSingleResult(), "things"));
        }
    }

    private static void sequences() throws Exception {
        try (SessionFactory factory = factory("sequences", "create-only")) {
            transaction(factory, session -> {
                for (int i = 0; i < 120; i++) {
                    Numbered numbered = new Numbered();
                    numbered.text = "row " + i;
                    session.persist(numbered);
                }
            });
            transaction(factory, session -> {
                Checks.same(120L, session.createQuery("select count(distinct id) from Numbered", Long.class).getSingleResult(), "rows");
                Checks.same("row 7", session.createQuery("select text from Numbered where text = 'row 7'", String.class).getSingleResult(), "text");
            });
        }
    }

    private static void batch() throws Exception {
        try (SessionFactory factory = factory("batch", "create-only")) {
            transaction(factory, session -> {
                for (int i = 0; i < 1000; i++) {
                    Thing thing = new Thing();
                    thing.text = "t" + i;
                    session.persist(thing);
                }
            });
            transaction(factory, session -> {
                Checks.same(1000L, session.createQuery("select count(distinct id) from Thing", Long.class).getSingleResult(), "things");
                Thing thing = session.createQuery("from Thing where text = 't500'", Thing.class).getSingleResult();
                Checks.same(thing, session.find(Thing.class, thing.id), "found by identifier");
            });
        }
    }

    private static void merge() throws Exception {
        try (SessionFactory factory = factory("merge", "create-only")) {
            fill(factory);
            Person[] detached = new Person[1];
            transaction(factory, session -> {
                detached[0] = session.createQuery("from Person p left join fetch p.tags where p.name = 'Ada'", Person.class).getSingleResult();
                detached[0].town.people.size();
            });
            detached[0].points = 77;
            transaction(factory, session -> session.merge(detached[0]));
            transaction(factory, session -> {
                Person ada = session.createQuery("from Person where name = 'Ada'", Person.class).getSingleResult();
                Checks.same(77, ada.points, "points");
            });
        }
    }

    private static void bytes() throws Exception {
        try (SessionFactory factory = configuration("bytes", "create-only").addAnnotatedClass(Bytes.class).buildSessionFactory()) {
            Bytes written = new Bytes();
            written.value = new byte[] {0, (byte) 0xff, (byte) 0xc3, 0x28};
            transaction(factory, session -> session.persist(written));
            transaction(factory, session -> {
                Bytes read = session.find(Bytes.class, written.id);
                Checks.holds(read != null, "not found by its identifier");
                Checks.same("[0, -1, -61, 40]", java.util.Arrays.toString(read.value), "bytes that are no UTF-8");
            });
        }
    }

    private static void updateSchema() throws Exception {
        try (SessionFactory factory = factory("update_schema", "create-only")) {
            fill(factory);
        }
        try (SessionFactory factory = factory("update_schema", "update")) {
            transaction(factory, session ->
                    Checks.same(3L, session.createQuery("select count(*) from Person", Long.class).getSingleResult(), "people"));
        }
    }

    private static void dropAndCreate() throws Exception {
        try (SessionFactory factory = factory("drop_and_create", "create-drop")) {
            fill(factory);
        }
        try (java.sql.Connection connection = java.sql.DriverManager.getConnection(url + "drop_and_create", "root", "");
                java.sql.ResultSet rows = connection.createStatement().executeQuery("SHOW TABLES")) {
            Checks.holds(!rows.next(), "a table is left");
        }
    }
}
