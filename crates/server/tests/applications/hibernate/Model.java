import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Embeddable;
import jakarta.persistence.Embedded;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.Inheritance;
import jakarta.persistence.InheritanceType;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.Lob;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OneToOne;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.hibernate.annotations.CreationTimestamp;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.type.SqlTypes;

/** Six entities of a shop. */
final class Model {
    private Model() {}

    enum Mood { SAD, OK }

    @Embeddable
    static class Address {
        String street;
        @Column(length = 10) String zip;
    }

    @Entity(name = "Customer")
    @Table(name = "customer", indexes = @Index(name = "customer_by_name", columnList = "name, born desc"))
    static class Customer {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 40) String name;
        @Column(unique = true) String email;
        @Enumerated(EnumType.STRING) Mood mood = Mood.OK;
        @JdbcTypeCode(SqlTypes.NAMED_ENUM) Mood named = Mood.OK;
        @Embedded Address address;
        LocalDate born;
        @CreationTimestamp Instant made;
        @Version int version;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, Object> about;
        @JdbcTypeCode(SqlTypes.ARRAY) String[] tags;
        Duration waited;
        @ElementCollection(fetch = FetchType.LAZY) Set<String> phones = new HashSet<>();
        @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL, orphanRemoval = true)
        @OrderBy("id") List<Purchase> purchases = new ArrayList<>();
        @OneToOne(cascade = CascadeType.ALL) Account account;
    }

    @Entity(name = "Account")
    static class Account {
        @Id @GeneratedValue(strategy = GenerationType.UUID) UUID id;
        @Column(precision = 12, scale = 2) BigDecimal credit = BigDecimal.ZERO;
        byte[] picture;
        @Column(columnDefinition = "text") String note;
    }

    @Entity(name = "Purchase")
    @Table(name = "purchase")
    static class Purchase {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @ManyToOne(optional = false, fetch = FetchType.LAZY) @JoinColumn(name = "customer_id")
        Customer customer;
        double total;
        boolean paid;
        @ManyToMany Set<Article> articles = new HashSet<>();
    }

    @Entity(name = "Article")
    @Inheritance(strategy = InheritanceType.JOINED)
    @Table(uniqueConstraints = @UniqueConstraint(name = "one_of_a_kind", columnNames = {"kind", "name"}))
    static class Article {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Integer id;
        String name;
        String kind;
        @Column(precision = 10, scale = 2) BigDecimal price;
    }

    @Entity(name = "Book")
    static class Book extends Article {
        String isbn;
        short pages;
    }

    @Entity(name = "Tag")
    static class Tag {
        @Id String label;
        @Lob String text;
    }
}
